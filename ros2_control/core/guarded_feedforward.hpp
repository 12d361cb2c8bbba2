// From desired motions and measurements to commands, one call each period: the exported robot, then the guard.
//
// What a controller of ros2_control and firmware of a microcontroller share. As the guard it is C++ without the standard
// library of C++, on memory that is there from the start.

#pragma once

#include "../guard/command_guard.hpp"
#include "robot_table.h"

namespace hodyn_ros
{
enum class Side { kMotor, kLink };

struct CommandConfig
{
  guard::Config guard;
  guard::Gains gains;           // of the feedback; none where empty
  Side states = Side::kMotor;   // what positions and velocities are measured, and commanded
  Side efforts = Side::kMotor;  // what efforts are commanded
  bool zero_at_the_end = true;  // what is left where nothing more is commanded: no efforts, or the last ones
};

// One with something `unusable` commands nothing, ever: look there once it is made.
class GuardedFeedforward
{
public:
  // `memory` and `stop_memory`: `bytes` each, robot.memory at least, aligned as by malloc, for the feedforward, and for
  // stops and the observer.
  GuardedFeedforward(
    const hodyn_robot & robot, const CommandConfig & config, void * memory, void * stop_memory, size_t bytes)
  : unusable(find_unusable(robot, config, memory, stop_memory, bytes)),
    position(robot.joints),
    velocity(robot.joints),
    effort(robot.joints),
    robot_(robot),
    config_(config),
    memory_(memory),
    stop_memory_(stop_memory),
    joint_motion_(robot.joints),
    joint_effort_(robot.joints),
    motor_motion_(robot.joints),
    motor_effort_(robot.joints),
    reference_(robot.joints),
    guard_(robot.joints, config.guard, limits(), config.gains, model(), observer())
  {
    joint_motion_.rows = 3;
    joint_effort_.rows = motor_effort_.rows = robot.order + 1;
    motor_motion_.rows = robot.motor_rows;
    if (!unusable) {
      robot.home(memory_);
      robot.home(stop_memory_);
    }
  }
  GuardedFeedforward(const GuardedFeedforward &) = delete;  // the guard calls its model
  GuardedFeedforward & operator=(const GuardedFeedforward &) = delete;

  // Begin where the robot is; `found_effort` is what drives do now, and stays until a motion is joined. Numbers that
  // are not finite count as zero, and as no position.
  void begin(const double * measured, const double * found_effort)
  {
    for (size_t j = 0; j < position.size(); ++j) {
      position[j] = measured[j];
      velocity[j] = 0.0;
      effort[j] = guard::is_finite(found_effort[j]) ? found_effort[j] : 0.0;
    }
  }

  // Take what was measured: positions and velocities of all joints; velocities may hold NaN, or be null.
  guard::Taken measure(guard::Instant now, guard::Instant stamp, const double * measured, const double * rates)
  {
    return guard_.measure(now, stamp, measured, rates);
  }

  // Take a desired motion about an instant, `order + 3` rows of the robot's coordinates.
  guard::Taken follow(guard::Instant now, guard::Instant stamp, const double * q)
  {
    if (unusable) {
      return guard::Taken::kNumbers;
    }
    const int code = robot_.feedforward(
      memory_, q, joint_motion_.numbers, joint_effort_.numbers, motor_motion_.numbers, motor_effort_.numbers);
    if (code == HODYN_FAILED) {
      return guard::Taken::kNumbers;
    }
    const guard::Series & motion = config_.states == Side::kMotor ? motor_motion_ : joint_motion_;
    const guard::Series & efforts = config_.efforts == Side::kMotor ? motor_effort_ : joint_effort_;
    reference_.positions.assign(motion.numbers, motion.rows);
    reference_.efforts.assign(efforts.numbers, efforts.rows);
    for (size_t j = 0; motor_motion_.rows == 3 && j < robot_.joints; ++j) {
      reference_.deflection.position[j] = motor_motion_.at(0, j) - joint_motion_.at(0, j);
      reference_.deflection.velocity[j] = motor_motion_.at(1, j) - joint_motion_.at(1, j);
      reference_.deflection.acceleration[j] = motor_motion_.at(2, j) - joint_motion_.at(2, j);
    }
    const unsigned singular = code == HODYN_NEAR_SINGULAR ? guard::kNearSingularity : 0U;
    return guard_.follow(now, stamp, reference_, status() | singular);
  }

  // The commands of one period, which `position`, `velocity` and `effort` then hold; false where nothing is commanded, so
  // that they are what was left. `elapsed` [s]: the time since the call before by a clock that cannot be set, where
  // there is one.
  bool command(guard::Instant now, guard::Optional<double> elapsed)
  {
    guard_.found = effort;  // what the drives do until a motion is joined, at first or after an end
    const bool commands = guard_.command(now, elapsed);
    if (commands) {
      position = guard_.issued.motion.position;
      velocity = guard_.issued.motion.velocity;
      effort = guard_.issued.effort;
    } else {
      velocity.fill(0.0);  // the rest stays as it was,
      leave_what_is_safe();
    }
    return commands;
  }

  // Leave what shall be where nothing more is commanded.
  void leave()
  {
    velocity.fill(0.0);
    if (config_.zero_at_the_end) {
      effort.fill(0.0);
    }
  }

  void stop(bool ends = true) { guard_.stop(ends); }
  bool start() { return guard_.start(); }
  const guard::CommandGuard & guard() const { return guard_; }

  const guard::Unusable unusable;
  guard::Vector position, velocity, effort;  // commanded, for each joint

private:
  static guard::Unusable find_unusable(
    const hodyn_robot & robot, const CommandConfig & config, const void * memory, const void * stop_memory,
    size_t bytes)
  {
    const size_t past = guard::most_of(guard::misaligned(memory), guard::misaligned(stop_memory));
    if (past != 0) {
      return {"bytes of a memory past its alignment", 0.0, 0.0, static_cast<double>(past)};
    }
    if (bytes < robot.memory) {
      return {
        "bytes of each memory of a robot", static_cast<double>(robot.memory), guard::kInfinite,
        static_cast<double>(bytes)};
    }
    constexpr size_t kMostOrder = guard::kMostRows - 1;
    if (robot.order > kMostOrder) {
      return {"order of a robot", 0.0, static_cast<double>(kMostOrder), static_cast<double>(robot.order)};
    }
    const guard::Vector all(robot.joints);
    return guard::find_unusable(robot.joints, config.guard, {all, all, all, all, all, all}, config.gains);
  }

  // but where the guard has ended in motion: drives have gone on without commands, nobody knows how; or where what was
  // left has let the robot run away.
  void leave_what_is_safe()
  {
    for (size_t i = 0; i < guard_.changes; ++i) {
      const guard::Reason & why = guard_.transitions[i].reason;
      if (why.cause == guard::Cause::kHeldUp) {
        leave();
      }
      if (why.tripped) {
        effort.fill(0.0);
      }
    }
  }

  guard::Limits limits() const
  {
    const bool motor = config_.efforts == Side::kMotor;
    const auto row = [this](const double * numbers) { return guard::Vector(numbers, numbers + robot_.joints); };
    return {
      row(robot_.velocity), row(motor ? robot_.motor_effort : robot_.effort),
      row(motor ? robot_.motor_effort_rate : robot_.effort_rate), row(motor ? robot_.motor_mismatch : robot_.mismatch),
      row(robot_.lower), row(robot_.upper)};
  }

  // The efforts of a motion, for the guard.
  guard::EffortModel model()
  {
    return robot_.motion_effort == nullptr ? guard::EffortModel{} : guard::EffortModel{motion_effort, this};
  }

  // A motion is that of the side whose states are measured; the other one is behind, or ahead of it.
  static void motion_effort(
    void * own, const guard::Motion & motion, const guard::Motion & deflection, double * result)
  {
    GuardedFeedforward & self = *static_cast<GuardedFeedforward *>(own);
    const bool of_motors = self.config_.states == Side::kMotor, motor = self.config_.efforts == Side::kMotor;
    double * links = self.links_;
    double * motors = self.motors_;
    const auto pack = [&](const guard::Vector & row, const guard::Vector & ahead) {
      for (size_t j = 0; j < row.size(); ++j) {
        *links++ = of_motors ? row[j] - ahead[j] : row[j];
        *motors++ = of_motors ? row[j] : row[j] + ahead[j];
      }
    };
    pack(motion.position, deflection.position);
    pack(motion.velocity, deflection.velocity);
    pack(motion.acceleration, deflection.acceleration);
    // where it fails, as loops do not close there, those of the last sound motion stay
    self.robot_.motion_effort(
      self.stop_memory_, self.links_, self.motors_, motor ? self.beside_ : self.sound_,
      motor ? self.sound_ : self.beside_);
    for (size_t j = 0; j < self.robot_.joints; ++j) {
      result[j] = self.sound_[j];
    }
  }

  // What acts beside the efforts, for the guard.
  guard::Observer observer()
  {
    if (offered().step == nullptr) {
      return {};
    }
    const bool of_motors = config_.states == Side::kMotor;  // else it is motors that swing, behind links
    return {start_observer, step_observer, this, of_motors ? offered().stiffness : nullptr};
  }

  const hodyn_observer & offered() const
  {
    return config_.efforts == Side::kMotor ? robot_.motor_observer : robot_.joint_observer;
  }

  static void start_observer(void * own, const double * sample)
  {
    GuardedFeedforward & self = *static_cast<GuardedFeedforward *>(own);
    self.offered().start(self.stop_memory_, self.both_sides(sample));
  }

  static bool step_observer(
    void * own, const double * sample, double period, double * efforts, double * deviations)
  {
    GuardedFeedforward & self = *static_cast<GuardedFeedforward *>(own);
    return self.offered().step(self.stop_memory_, self.both_sides(sample), period, efforts, deviations) != HODYN_FAILED;
  }

  // Motions of links and motors, and efforts, from the motion of the side that is measured and how far motors are ahead.
  const double * both_sides(const double * sample)
  {
    const bool of_motors = config_.states == Side::kMotor;
    const size_t rows = 2 * robot_.joints;
    for (size_t i = 0; i < rows; ++i) {
      const double measured = sample[i], ahead = sample[rows + i];
      sides_[i] = of_motors ? measured - ahead : measured;
      sides_[rows + i] = of_motors ? measured : measured + ahead;
    }
    for (size_t i = 2 * rows; i < 2 * rows + robot_.joints; ++i) {
      sides_[i] = sample[i];
    }
    return sides_;
  }

  // The limits that a feedforward exceeds; hodyn_ros.feedforward.model.FeedforwardLimits in C++.
  unsigned status() const
  {
    bool effort_beyond = false, rate = false, speed = false, place = false;
    for (size_t j = 0; j < robot_.joints; ++j) {
      const auto beyond = [j](const guard::Series & series, size_t order, const double * limit) {
        return series.rows > order && fabs(series.at(order, j)) > limit[j];
      };
      effort_beyond = effort_beyond || beyond(joint_effort_, 0, robot_.effort) ||
                      beyond(motor_effort_, 0, robot_.motor_effort);
      rate = rate || beyond(joint_effort_, 1, robot_.effort_rate) ||
             beyond(motor_effort_, 1, robot_.motor_effort_rate);
      speed = speed || beyond(joint_motion_, 1, robot_.velocity) ||
              beyond(motor_motion_, 1, robot_.motor_velocity);
      const double there = joint_motion_.at(0, j);
      place = place || there > robot_.upper[j] || there < robot_.lower[j];
    }
    return effort_beyond * guard::kEffortLimitExceeded | rate * guard::kEffortRateLimitExceeded |
           speed * guard::kVelocityLimitExceeded | place * guard::kPositionLimitExceeded;
  }

  const hodyn_robot & robot_;
  CommandConfig config_;
  void * memory_;
  void * stop_memory_;
  guard::Series joint_motion_, joint_effort_, motor_motion_, motor_effort_;
  guard::Reference reference_;
  double links_[3 * guard::kMostJoints] = {}, motors_[3 * guard::kMostJoints] = {};
  double beside_[guard::kMostJoints] = {}, sound_[guard::kMostJoints] = {}, sides_[5 * guard::kMostJoints] = {};
  guard::CommandGuard guard_;
};
}  // namespace hodyn_ros
