// Desired motions without a network: there and back, a hundred a second.

#include <zephyr/kernel.h>

#include "motion.hpp"

namespace
{
void publish(void *, void *, void *)
{
  const int64_t begins = clock_now() + 1'000'000'000;
  for (;;) {
    desired next;
    next.stamp = clock_now();
    motion_at(1e-9 * static_cast<double>(next.stamp - begins), next.q);
    desire(&next);
    k_sleep(K_MSEC(10));
  }
}
K_THREAD_DEFINE(publish_thread, 2048, publish, nullptr, nullptr, nullptr, 5, 0, 0);
}  // namespace
