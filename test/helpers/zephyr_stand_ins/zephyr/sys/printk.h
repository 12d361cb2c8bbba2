/* What Zephyr says, for tests. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
__attribute__((format(printf, 1, 2))) void printk(const char *format, ...);
#ifdef __cplusplus
}
#endif
