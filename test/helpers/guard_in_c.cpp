// The guard in C++ behind functions of C, for tests by ctypes.

#include <cstring>
#include <memory>

#include "command_guard.hpp"

using hodyn_ros::guard::CommandGuard;
using hodyn_ros::guard::Config;
using hodyn_ros::guard::Gains;
using hodyn_ros::guard::Limits;
using hodyn_ros::guard::Motion;
using hodyn_ros::guard::Reference;
using hodyn_ros::guard::Series;
using hodyn_ros::guard::Vector;

namespace
{
constexpr std::size_t kRows = 8;
using Model = void (*)(const double * motion, double * efforts);

void fill(Series & series, const double * numbers, int rows)
{
  series.rows = static_cast<std::size_t>(rows);
  std::copy_n(numbers, series.rows * series.n, series.numbers.begin());
}
}  // namespace

extern "C" {

// `numbers`: as in test_guard_in_cpp.py; `limits`: three rows; `gains`: two, or null.
CommandGuard * guard_new(int n, const double * numbers, const double * limits, const double * gains, Model model)
{
  const auto joints = static_cast<std::size_t>(n);
  Config config;
  double * const fields[] = {
    &config.timeout, &config.measurement_timeout, &config.clock_tolerance, &config.latency, &config.lead,
    &config.join_within, &config.join_speed, &config.settle, &config.fade, &config.speed_margin,
    &config.tracking_error, &config.resolution, &config.reference_step, &config.effort_step,
    &config.saturation_time, &config.deceleration, &config.shortest_stop, &config.release_after};
  for (double * field : fields) {
    *field = *numbers++;
  }
  config.measured = *numbers++ != 0.0;
  config.stop_on = static_cast<unsigned>(*numbers++);
  config.end = static_cast<hodyn_ros::guard::End>(static_cast<int>(*numbers++));
  config.first_effort = static_cast<hodyn_ros::guard::FirstEffort>(static_cast<int>(*numbers++));
  const auto row = [&](const double * from, std::size_t i) {
    return Vector(from + i * joints, from + (i + 1) * joints);
  };
  hodyn_ros::guard::EffortModel efforts;
  if (model != nullptr) {
    efforts = [model, joints, packed = Vector(3 * joints)](const Motion & motion, Vector & result) mutable {
      std::copy(motion.position.begin(), motion.position.end(), packed.begin());
      std::copy(motion.velocity.begin(), motion.velocity.end(), packed.begin() + static_cast<long>(joints));
      std::copy(motion.acceleration.begin(), motion.acceleration.end(), packed.begin() + static_cast<long>(2 * joints));
      model(packed.data(), result.data());
    };
  }
  return new CommandGuard(
    joints, kRows, kRows, config, Limits{row(limits, 0), row(limits, 1), row(limits, 2)},
    gains == nullptr ? Gains{} : Gains{row(gains, 0), row(gains, 1)}, efforts);
}

void guard_delete(CommandGuard * guard) { delete guard; }
void guard_stop(CommandGuard * guard) { guard->stop(); }
void guard_listen(CommandGuard * guard, int listening) { guard->listening = listening != 0; }

int guard_measure(CommandGuard * guard, std::int64_t now, std::int64_t stamp, const double * q, const double * v)
{
  return static_cast<int>(guard->measure(now, stamp, q, v));
}

int guard_follow(
  CommandGuard * guard, std::int64_t now, std::int64_t stamp, const double * positions, int position_rows,
  const double * efforts, int effort_rows, unsigned status)
{
  Reference reference(guard->found.size(), kRows, kRows);
  fill(reference.positions, positions, position_rows);
  fill(reference.efforts, efforts, effort_rows);
  return static_cast<int>(guard->follow(now, stamp, reference, status));
}

// `command`: position, velocity and effort; `report`: state, ended, fault and state of each transition.
int guard_command(CommandGuard * guard, std::int64_t now, double * command, int * report)
{
  const bool commands = guard->command(now);
  if (commands) {
    const std::size_t bytes = sizeof(double) * guard->found.size();
    std::memcpy(command, guard->issued.motion.position.data(), bytes);
    std::memcpy(command + guard->found.size(), guard->issued.motion.velocity.data(), bytes);
    std::memcpy(command + 2 * guard->found.size(), guard->issued.effort.data(), bytes);
  }
  *report++ = static_cast<int>(guard->state);
  *report++ = guard->ended;
  *report++ = static_cast<int>(guard->changes);
  for (std::size_t i = 0; i < guard->changes; ++i) {
    *report++ = static_cast<int>(guard->transitions[i].after);
    *report++ = static_cast<int>(guard->transitions[i].found.fault);
  }
  return commands;
}
}
