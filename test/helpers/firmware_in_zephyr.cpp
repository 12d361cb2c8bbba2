// The firmware of examples/zephyr with a fault, on stand-ins of Zephyr and a simulated robot.
//
// firmware FAULT prints a line for each millisecond: what the drives were told (write, hold, off), state, seven efforts,
// seven velocities and seven positions; lines of the firmware itself begin with "# ".

#include <zephyr/fatal.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>
#include <zephyr/task_wdt/task_wdt.h>

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "desired.h"
#include "drives.hpp"
#include "motion.hpp"
#include "simulated_robot.hpp"

int firmware();  // main of the example

namespace
{
constexpr long kEnd = 3200, kFault = 1250;  // [ms]
constexpr int64_t kBegin = 1'000'000'000;   // [ns]

std::string fault;
SimulatedRobot robot(kStart);
int64_t now = kBegin, fed = -1;  // [ns]
long k = 0;
task_wdt_callback_t expired = nullptr;
int64_t reload = 0;
double effort[JOINTS];
const char * told = "hold";

// Known before anything is constructed.
std::vector<k_thread_entry_t> & threads()
{
  static std::vector<k_thread_entry_t> all;
  return all;
}

bool is(const char * name) { return fault == name; }
bool between(long begin, long end) { return kFault + begin <= k && k < kFault + end; }

// A hundred motions a second, with a fault.
void send()
{
  if (k % 10 != 0 || (is("silent") && between(0, 300))) {
    return;
  }
  desired motion;
  motion.stamp = now - (is("stale") && between(0, 300) ? 200'000'000 : 0);
  motion_at(1e-9 * static_cast<double>(now - kBegin) - 0.5, motion.q);
  if (is("nan") && between(0, 300)) {
    motion.q[10] = NAN;
  }
  motion.q[0] += is("jump") && between(0, 500) ? 0.5 : 0.0;
  motion.q[2 * JOINTS + 1] += is("acceleration") && between(0, 20) ? 1e4 : 0.0;
  desire(&motion);
}

void print()
{
  std::printf("%s,%d", told, status_now().state);
  for (const double * row : {effort, robot.motion[1], robot.motion[0]}) {
    for (int j = 0; j < JOINTS; ++j) {
      std::printf(",%.9g", row[j]);
    }
  }
  std::printf("\n");
}

// The drives carry out the last command for a millisecond.
void move()
{
  double acting[JOINTS];
  std::memcpy(acting, effort, sizeof(acting));
  acting[1] *= is("turned") && k >= kFault ? -1.0 : 1.0;
  robot.move(acting, 1e-3);
}

void pass_a_millisecond()
{
  now += 1'000'000;
  if (expired != nullptr && fed >= 0 && now - fed > reload) {
    fed = -1;
    expired(0, nullptr);
  }
}

// The loop stands still, and the drives go on.
void hold_up(int milliseconds)
{
  for (int i = 0; i < milliseconds; ++i) {
    pass_a_millisecond();
    if (std::strcmp(told, "write") == 0) {
      move();
    }
  }
}
}  // namespace

namespace drives
{
bool read(double * position, double * velocity)
{
  static double then = 0.0;
  for (int j = 0; j < JOINTS; ++j) {
    position[j] = robot.motion[0][j];
    velocity[j] = robot.motion[1][j];
  }
  if (is("frozen") && k >= kFault) {
    position[3] = then;
  }
  then = position[3];
  if (is("encoder") && between(0, 300)) {
    position[3] = NAN;
  }
  return !(is("blind") && between(0, 300));
}

void write(const double * commanded)
{
  told = "write";
  std::memcpy(effort, commanded, sizeof(effort));
  move();
}

void hold()
{
  told = "hold";
  robot.stand();
}

void off()
{
  told = "off";
  std::printf("# drives off\n");
  robot.stand();
}
}  // namespace drives

extern "C" {

// One period is over: what drives were told in it, and what comes in the next.
uint32_t k_timer_status_sync(k_timer *)
{
  stand_in_run_threads();
  print();
  if (++k == kEnd) {
    std::exit(0);
  }
  pass_a_millisecond();
  if (k == kFault) {
    hold_up(is("late") ? 30 : is("held up") ? 100 : 0);
    if (is("crash")) {
      k_sys_fatal_error_handler(0, nullptr);
    }
    if (is("stop")) {
      ask_to_stop();
    }
  }
  send();
  return 1;
}

void k_timer_start(k_timer *, k_timeout_t, k_timeout_t) {}

int k_msgq_put(k_msgq * queue, const void * message, k_timeout_t)
{
  if (queue->used == queue->most) {
    return -1;
  }
  std::memcpy(queue->buffer + (queue->begin + queue->used++) % queue->most * queue->size, message, queue->size);
  return 0;
}

int k_msgq_get(k_msgq * queue, void * message, k_timeout_t)
{
  if (queue->used == 0) {
    return -1;
  }
  std::memcpy(message, queue->buffer + queue->begin * queue->size, queue->size);
  queue->begin = (queue->begin + 1) % queue->most;
  --queue->used;
  return 0;
}

void k_msgq_purge(k_msgq * queue) { queue->used = 0; }

void stand_in_add_thread(k_thread_entry_t entry) { threads().push_back(entry); }

void stand_in_run_threads(void)
{
  for (const k_thread_entry_t thread : threads()) {
    thread(nullptr, nullptr, nullptr);
  }
}

k_tid_t k_current_get(void) { return nullptr; }
void k_thread_priority_set(k_tid_t, int) {}
int64_t k_uptime_ticks(void) { return now / 10'000; }
uint64_t k_ticks_to_ns_floor64(uint64_t ticks) { return ticks * 10'000; }
long atomic_get(const atomic_t * target) { return *target; }

long atomic_set(atomic_t * target, long value)
{
  const long before = *target;
  *target = value;
  return before;
}

long atomic_clear(atomic_t * target) { return atomic_set(target, 0); }

void k_fatal_halt(unsigned int)
{
  print();
  std::exit(0);
}

void printk(const char * format, ...)
{
  static bool begins = true;
  std::va_list arguments;
  va_start(arguments, format);
  std::printf("%s", begins ? "# " : "");
  std::vprintf(format, arguments);
  begins = format[std::strlen(format) - 1] == '\n';
  va_end(arguments);
}

int task_wdt_init(const device *) { return 0; }

int task_wdt_add(uint32_t reload_period, task_wdt_callback_t callback, void *)
{
  expired = callback;
  reload = 1'000'000 * static_cast<int64_t>(reload_period);
  return 0;
}

int task_wdt_feed(int)
{
  fed = now;
  return 0;
}
}

int main(int, char ** arguments)
{
  fault = arguments[1];
  return firmware();
}
