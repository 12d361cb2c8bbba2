/* What Zephyr calls where nothing goes on, for tests. */
#pragma once

struct arch_esf;
#ifdef __cplusplus
extern "C" {
#endif
__attribute__((noreturn)) void k_fatal_halt(unsigned int reason);
void k_sys_fatal_error_handler(unsigned int reason, const struct arch_esf *esf);
#ifdef __cplusplus
}
#endif
