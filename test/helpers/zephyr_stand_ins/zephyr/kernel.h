/* Calls of Zephyr's kernel that examples/zephyr makes, for tests: one thread, and time that firmware_in_zephyr.cpp lets
 * pass. Threads run when `stand_in_run_threads` is called, until they would wait. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t k_timeout_t; /* [ns] */
#define K_NO_WAIT ((k_timeout_t)0)
#define K_FOREVER ((k_timeout_t)-1)
#define K_NSEC(t) ((k_timeout_t)(t))
#define K_MSEC(t) ((k_timeout_t)(t)*1000000)

struct k_timer {
  int none;
};
#define K_TIMER_DEFINE(name, expiry, stop) struct k_timer name
void k_timer_start(struct k_timer *timer, k_timeout_t duration, k_timeout_t period);
uint32_t k_timer_status_sync(struct k_timer *timer);

struct k_msgq {
  size_t size;
  uint32_t most, begin, used;
  char *buffer;
};
#define K_MSGQ_DEFINE(name, size, most, align)               \
  static char name##_buffer[(size) * (most)];                \
  struct k_msgq name = {(size), (most), 0, 0, name##_buffer}
int k_msgq_put(struct k_msgq *queue, const void *message, k_timeout_t timeout);
int k_msgq_get(struct k_msgq *queue, void *message, k_timeout_t timeout);
void k_msgq_purge(struct k_msgq *queue);

typedef void (*k_thread_entry_t)(void *, void *, void *);
typedef struct k_thread *k_tid_t;
void stand_in_add_thread(k_thread_entry_t entry);
void stand_in_run_threads(void);
#define K_THREAD_DEFINE(name, stack, entry, a, b, c, priority, options, delay) \
  __attribute__((constructor)) static void name##_define(void) { stand_in_add_thread(entry); }
#define K_PRIO_COOP(priority) (-16 + (priority))
k_tid_t k_current_get(void);
void k_thread_priority_set(k_tid_t thread, int priority);
int32_t k_sleep(k_timeout_t timeout);

int64_t k_uptime_ticks(void);
uint64_t k_ticks_to_ns_floor64(uint64_t ticks);

typedef long atomic_t;
long atomic_get(const atomic_t *target);
long atomic_set(atomic_t *target, long value);
long atomic_clear(atomic_t *target);

#ifdef __cplusplus
}
#endif
