// From references and measurements to commands, one call each period: the exported robot, then the guard.
//
// All of hodyn_ros/FeedforwardController that is not ros2_control. `update` neither allocates nor locks.

#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "../guard/command_guard.hpp"
#include "../guard/reason_text.hpp"
#include "lock_free.hpp"
#include "robot_library.hpp"

namespace hodyn_ros
{
enum class Side { kMotor, kLink };

struct CoreConfig
{
  guard::Config guard;
  guard::Gains gains;           // of the feedback; none where empty
  Side states = Side::kMotor;   // what positions and velocities are measured, and commanded
  Side efforts = Side::kMotor;  // what efforts are commanded
  bool zero_at_the_end = true;  // what is left where nothing more is commanded: no efforts, or the last ones
};

// A desired motion about one instant.
struct Desired
{
  Desired(std::size_t coordinates, std::size_t orders) : q(coordinates * orders) {}
  guard::Instant stamp = 0;
  guard::Vector q;  // derivative k of coordinate j at [k * coordinates + j]
};

class FeedforwardCore
{
public:
  FeedforwardCore(std::shared_ptr<const RobotLibrary> library, CoreConfig config)
  : position(library->table().joints),
    velocity(library->table().joints),
    effort(library->table().joints),
    desired(Desired(library->table().coordinates, library->table().order + 3)),
    library_(std::move(library)),
    robot_(library_->table()),
    config_(std::move(config)),
    joint_motion_(3 * robot_.joints),
    joint_effort_((robot_.order + 1) * robot_.joints),
    motor_motion_(robot_.motor_rows * robot_.joints),
    motor_effort_((robot_.order + 1) * robot_.joints),
    packed_(3 * robot_.joints),
    beside_(robot_.joints),
    memory_(new std::max_align_t[robot_.memory / sizeof(std::max_align_t) + 1]),
    stop_memory_(new std::max_align_t[robot_.memory / sizeof(std::max_align_t) + 1]),
    reference_(robot_.joints, 3, robot_.order + 1)
  {
    reset();
  }

  // Begin anew where the robot is; `effort` is what stands on the interfaces, and stays until a motion is
  // joined. Numbers that are not finite count as zero, and as no position.
  void activate(const double * measured, const double * found_effort)
  {
    reset();
    for (std::size_t j = 0; j < robot_.joints; ++j) {
      position[j] = measured[j];
      velocity[j] = 0.0;
      effort[j] = std::isfinite(found_effort[j]) ? found_effort[j] : 0.0;
    }
    desired.take();  // what was desired before does not count
  }

  // The commands of one period, which `position`, `velocity` and `effort` then hold. `elapsed` [s]: the time since
  // the update before by a clock that cannot be set, where there is one. `chained`: references of another
  // controller, row by row as q, NaN where it gives none; null: the last desired motion counts.
  void update(
    guard::Instant now, std::optional<double> elapsed, const double * measured, const double * rates,
    const double * chained)
  {
    if (stop_asked.load(std::memory_order_relaxed)) {
      guard_->stop();
    }
    if (start_asked.exchange(false, std::memory_order_relaxed)) {
      guard_->start();
    }
    guard_->measure(now, now, measured, rates);
    if (chained != nullptr) {
      follow_chained(now, chained);
    } else if (desired.take()) {
      follow(now, desired.current().stamp, desired.current().q.data());
    }
    guard_->found = effort;  // what the drives do until a motion is joined, at first or after an end
    if (guard_->command(now, elapsed)) {
      position = guard_->issued.motion.position;
      velocity = guard_->issued.motion.velocity;
      effort = guard_->issued.effort;
    } else {
      std::fill(velocity.begin(), velocity.end(), 0.0);  // the rest stays as it was,
      leave_after_a_hold_up();
    }
    for (std::size_t i = 0; i < guard_->changes; ++i) {
      events.push(guard_->transitions[i]);
    }
    has_stopped.store(
      guard_->state == guard::State::kStopping || guard_->state == guard::State::kStopped, std::memory_order_relaxed);
  }

  // Leave what shall be on the interfaces; true where a motion was followed, or the robot is not at rest yet.
  bool deactivate()
  {
    const guard::State state = guard_->state;
    velocity_then_ = velocity;
    effort_then_ = effort;
    std::fill(velocity.begin(), velocity.end(), 0.0);
    leave();
    return state != guard::State::kWaiting && state != guard::State::kStopped;
  }

  // Go on after a `deactivate` as if it had not been.
  void resume()
  {
    velocity = velocity_then_;
    effort = effort_then_;
  }

  const guard::CommandGuard & guard() const { return *guard_; }
  const RobotLibrary & library() const { return *library_; }

  guard::Vector position, velocity, effort;  // commanded, for each joint
  Latest<Desired> desired;                   // written by whoever takes the messages
  std::atomic<bool> stop_asked{false};       // to stop for good
  std::atomic<bool> start_asked{false};      // to join a motion again, although a fault has stopped the robot
  std::atomic<bool> has_stopped{false};      // whether there is something to start
  std::atomic<long> rejected{0};  // references that could not be followed
  Events<guard::Transition, 64> events;

private:
  void leave()
  {
    if (config_.zero_at_the_end) {
      std::fill(effort.begin(), effort.end(), 0.0);
    }
  }

  // but where the guard has ended in motion: drives have gone on without commands, nobody knows how.
  void leave_after_a_hold_up()
  {
    for (std::size_t i = 0; i < guard_->changes; ++i) {
      if (guard_->transitions[i].reason.cause == guard::Cause::kHeldUp) {
        leave();
      }
    }
  }

  void reset()
  {
    robot_.home(memory_.get());
    robot_.home(stop_memory_.get());
    stop_asked = start_asked = has_stopped = false;
    const bool motor = config_.efforts == Side::kMotor;
    const auto row = [this](const double * numbers) { return guard::Vector(numbers, numbers + robot_.joints); };
    guard_ = std::make_unique<guard::CommandGuard>(
      robot_.joints, std::size_t{3}, robot_.order + 1, config_.guard,
      guard::Limits{
        row(robot_.velocity), row(motor ? robot_.motor_effort : robot_.effort),
        row(motor ? robot_.motor_effort_rate : robot_.effort_rate),
        row(motor ? robot_.motor_mismatch : robot_.mismatch)},
      config_.gains, stopping(), observer());
  }

  // The efforts of a motion as if the joints were stiff, for the guard.
  guard::EffortModel stopping()
  {
    if (robot_.stiff_effort == nullptr) {
      return {};
    }
    return [this](const guard::Motion & motion, guard::Vector & result) {
      const std::size_t n = robot_.joints;
      std::copy_n(motion.position.begin(), n, packed_.begin());
      std::copy_n(motion.velocity.begin(), n, packed_.begin() + static_cast<std::ptrdiff_t>(n));
      std::copy_n(motion.acceleration.begin(), n, packed_.begin() + static_cast<std::ptrdiff_t>(2 * n));
      const bool motor = config_.efforts == Side::kMotor;
      double * const joints = motor ? beside_.data() : result.data();
      double * const motors = motor ? result.data() : beside_.data();
      robot_.stiff_effort(stop_memory_.get(), packed_.data(), joints, motors);
    };
  }

  // What acts beside the efforts, for the guard; the links are where a stop has them too.
  guard::Observer observer()
  {
    const hodyn_observer & offered =
      config_.efforts == Side::kMotor ? robot_.motor_observer : robot_.joint_observer;
    if (offered.step == nullptr) {
      return {};
    }
    const auto start = [&offered](const double * sample, double * after) {
      offered.start(sample, after);
      return true;
    };
    const auto step = [this, &offered](const double * sample, double period, const double * before, double * after) {
      return offered.step(stop_memory_.get(), sample, period, before, after) != HODYN_FAILED;
    };
    return {offered.size, start, step};
  }

  // NaN among positions and velocities is no reference; higher derivatives that are not given count as zero.
  void follow_chained(guard::Instant now, const double * chained)
  {
    Desired & q = chained_;
    const std::size_t n = robot_.coordinates;
    for (std::size_t i = 0; i < q.q.size(); ++i) {
      if (i < 2 * n && !std::isfinite(chained[i])) {
        rejected.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      q.q[i] = std::isnan(chained[i]) ? 0.0 : chained[i];
    }
    follow(now, now, q.q.data());
  }

  void follow(guard::Instant now, guard::Instant stamp, const double * q)
  {
    const int code = robot_.feedforward(
      memory_.get(), q, joint_motion_.data(), joint_effort_.data(), motor_motion_.data(), motor_effort_.data());
    if (code == HODYN_FAILED) {
      rejected.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const bool motors = config_.states == Side::kMotor;
    copy(motors ? motor_motion_ : joint_motion_, reference_.positions);
    copy(config_.efforts == Side::kMotor ? motor_effort_ : joint_effort_, reference_.efforts);
    const unsigned singular = code == HODYN_NEAR_SINGULAR ? guard::kNearSingularity : 0U;
    if (guard_->follow(now, stamp, reference_, status() | singular) != guard::Taken::kYes) {
      rejected.fetch_add(1, std::memory_order_relaxed);
    }
  }

  static void copy(const guard::Vector & from, guard::Series & to)
  {
    to.rows = from.size() / to.n;
    std::copy(from.begin(), from.end(), to.numbers.begin());
  }

  // The limits that a feedforward exceeds; hodyn_ros.feedforward.model.FeedforwardLimits in C++.
  unsigned status() const
  {
    const std::size_t n = robot_.joints;
    bool effort_beyond = false, rate = false, speed = false, place = false;
    for (std::size_t j = 0; j < n; ++j) {
      const auto beyond = [j, n](const guard::Vector & rows, std::size_t order, const double * limit) {
        return rows.size() > order * n && std::abs(rows[order * n + j]) > limit[j];
      };
      effort_beyond = effort_beyond || beyond(joint_effort_, 0, robot_.effort) ||
                      beyond(motor_effort_, 0, robot_.motor_effort);
      rate = rate || beyond(joint_effort_, 1, robot_.effort_rate) ||
             beyond(motor_effort_, 1, robot_.motor_effort_rate);
      speed = speed || beyond(joint_motion_, 1, robot_.velocity) ||
              beyond(motor_motion_, 1, robot_.motor_velocity);
      place = place || joint_motion_[j] > robot_.upper[j] || joint_motion_[j] < robot_.lower[j];
    }
    return effort_beyond * guard::kEffortLimitExceeded | rate * guard::kEffortRateLimitExceeded |
           speed * guard::kVelocityLimitExceeded | place * guard::kPositionLimitExceeded;
  }

  std::shared_ptr<const RobotLibrary> library_;
  const hodyn_robot & robot_;
  CoreConfig config_;
  guard::Vector joint_motion_, joint_effort_, motor_motion_, motor_effort_, packed_, beside_;
  std::unique_ptr<std::max_align_t[]> memory_, stop_memory_;
  guard::Reference reference_;
  Desired chained_{robot_.coordinates, robot_.order + 3};
  guard::Vector velocity_then_, effort_then_;  // before the last `deactivate`
  std::unique_ptr<guard::CommandGuard> guard_;
};
}  // namespace hodyn_ros
