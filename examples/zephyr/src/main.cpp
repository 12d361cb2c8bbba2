// A loop of 1 kHz: the exported feedforward of a robot and a feedback, behind the guard that ros2_control has as well.

#include <zephyr/fatal.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>
#include <zephyr/task_wdt/task_wdt.h>

#include "desired.h"
#include "drives.hpp"
#include "robot.hpp"
#include "robot_table.h"

namespace guard = hodyn_ros::guard;

K_TIMER_DEFINE(period, nullptr, nullptr);
K_MSGQ_DEFINE(motions, sizeof(desired), 1, 8);
K_MSGQ_DEFINE(changes, sizeof(guard::Transition), 8, 8);

namespace
{
atomic_t start_asked, stop_asked;
atomic_t state_now, cause_now;
alignas(8) unsigned char memory[kMemory], stop_memory[kMemory];
hodyn_ros::GuardedFeedforward commands(*hodyn_robot_table(), command_config(), memory, stop_memory);

void drives_off(int, void *) { drives::off(); }

// Why this firmware cannot command this robot; it then never does.
bool is_usable(const hodyn_robot & robot)
{
  if (commands.unusable) {
    const guard::Unusable & wrong = commands.unusable;
    printk("%s must be within %g and %g, found %g\n", wrong.name, wrong.least, wrong.most, wrong.found);
    return false;
  }
  if (robot.abi != HODYN_ROBOT_ABI || robot.joints != JOINTS || robot.coordinates != JOINTS || robot.order != ORDER) {
    printk("desired.h is of another robot than '%s' of order %u with %u joints\n", robot.robot, robot.order, robot.joints);
    return false;
  }
  const double error = robot.self_test();
  if (!(error < 1e-9)) {
    printk("the self-test of '%s' is off by %g\n", robot.robot, error);
    return false;
  }
  return true;
}

// One period: what was measured and desired, then the command.
void cycle(int64_t now, double elapsed)
{
  static bool began = false;
  static double position[JOINTS], velocity[JOINTS];
  static desired motion;
  const double nothing[JOINTS] = {};
  if (drives::read(position, velocity)) {
    if (!began) {
      commands.begin(position, nothing);
      began = true;
    }
    commands.measure(now, now, position, velocity);
  }
  if (atomic_clear(&stop_asked) != 0) {
    commands.stop();
  }
  if (atomic_clear(&start_asked) != 0) {
    commands.start();
  }
  if (k_msgq_get(&motions, &motion, K_NO_WAIT) == 0) {
    commands.follow(now, motion.stamp, motion.q);
  }
  if (began && commands.command(now, elapsed)) {
    drives::write(commands.effort.data());
  } else {
    drives::hold();
  }
  const guard::CommandGuard & own = commands.guard();
  for (size_t i = 0; i < own.changes; ++i) {
    k_msgq_put(&changes, &own.transitions[i], K_NO_WAIT);
  }
  atomic_set(&state_now, static_cast<int>(own.state));
  atomic_set(&cause_now, static_cast<int>(own.reason.cause));
}

// Say what has changed, beside the loop.
void report(void *, void *, void *)
{
  const hodyn_robot & robot = *hodyn_robot_table();
  guard::Transition change;
  while (k_msgq_get(&changes, &change, K_FOREVER) == 0) {
    const guard::Reason & why = change.reason;
    printk(
      "%s -> %s: %s%s", name_of(change.before), name_of(change.after), name_of(why.cause),
      why.tripped ? ", so the motors let go" : "");
    if (why.joint >= 0) {
      printk(" (%s)", robot.joint_names[why.joint]);
    }
    if (why.is_fault()) {
      printk(": found %g, allowed %g", why.value, why.limit);
    }
    printk("\n");
  }
}
K_THREAD_DEFINE(report_thread, 2048, report, nullptr, nullptr, nullptr, 10, 0, 0);
}  // namespace

extern "C" {

int64_t clock_now(void) { return static_cast<int64_t>(k_ticks_to_ns_floor64(static_cast<uint64_t>(k_uptime_ticks()))); }

void desire(const desired * motion)
{
  while (k_msgq_put(&motions, motion, K_NO_WAIT) != 0) {
    k_msgq_purge(&motions);
  }
}

void ask_to_start(void) { atomic_set(&start_asked, 1); }
void ask_to_stop(void) { atomic_set(&stop_asked, 1); }

status status_now(void)
{
  return {clock_now(), static_cast<int32_t>(atomic_get(&state_now)), static_cast<int32_t>(atomic_get(&cause_now))};
}

// Zephyr halts, and drives would carry out the last command until their time is over.
void k_sys_fatal_error_handler(unsigned int reason, const struct arch_esf *)
{
  drives::off();
  k_fatal_halt(reason);
}
}

int main()
{
  drives::hold();
  if (!is_usable(*hodyn_robot_table())) {
    return 1;
  }
  k_thread_priority_set(k_current_get(), K_PRIO_COOP(1));
  task_wdt_init(nullptr);  // here the watchdog of the board, where it has one
  const int watchdog = task_wdt_add(static_cast<uint32_t>(1e3 * kDriveTimeout), drives_off, nullptr);
  if (watchdog < 0) {
    printk("there is no watchdog\n");
    return 1;
  }
  k_timer_start(&period, K_NSEC(kPeriod), K_NSEC(kPeriod));
  int64_t before = clock_now();
  for (;;) {
    k_timer_status_sync(&period);
    task_wdt_feed(watchdog);
    const int64_t now = clock_now();
    cycle(now, 1e-9 * static_cast<double>(now - before));
    before = now;
  }
}
