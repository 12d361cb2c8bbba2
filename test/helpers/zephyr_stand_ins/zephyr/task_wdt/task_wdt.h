/* Zephyr's watchdog of threads, for tests. */
#pragma once

#include <stdint.h>

struct device;
#ifdef __cplusplus
extern "C" {
#endif
typedef void (*task_wdt_callback_t)(int channel, void *user_data);
int task_wdt_init(const struct device *hardware);
int task_wdt_add(uint32_t reload_period, task_wdt_callback_t callback, void *user_data);
int task_wdt_feed(int channel);
#ifdef __cplusplus
}
#endif
