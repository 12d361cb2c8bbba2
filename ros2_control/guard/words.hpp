// The words of the guard between feedforwards and motors: its states, what it checks, and what it allows.
//
// hodyn_ros/guard/guard_config.py in C++. Read m and N for rad and N.m where a joint is prismatic.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace hodyn_ros::guard
{
using Vector = std::vector<double>;   // one number for each joint
using Instant = std::int64_t;         // [ns] of the outer clock
constexpr double kInfinite = std::numeric_limits<double>::infinity();

enum class State : int { kWaiting, kJoining, kFollowing, kStopping, kStopped };

enum class Fault : int {
  kShutdown,
  kHeldUp,
  kNoMeasurement,
  kLateMeasurements,
  kNoFeedforward,
  kReferenceStep,
  kStatus,
  kVelocity,
  kTracking,
  kSaturation,
  kEffortStep,
  kNone
};

// Why a motion cannot be joined, where no check fails.
enum class Obstacle : int { kNone, kFault, kSettling, kUnknownPose, kNoPositions, kPose, kSpeed, kNobodyListens };

enum class End : int { kHold, kZero };
// What the joints carry before the first command; kFound is what `CommandGuard::found` has been set to.
enum class FirstEffort : int { kFeedforward, kZero, kFound };

// Bits of the status of a feedforward, as in FeedforwardTorque.msg.
enum Status : unsigned {
  kEffortLimitExceeded = 1,
  kEffortRateLimitExceeded = 2,
  kVelocityLimitExceeded = 4,
  kPositionLimitExceeded = 8,
  kEffortClamped = 16,
  kNearSingularity = 32
};

// Whether a measurement or a feedforward was taken, or else what is wrong with it.
enum class Taken : int { kYes, kClock, kNumbers, kJump };

inline const char * name_of(State state)
{
  static const char * const names[] = {"waiting", "joining", "following", "stopping", "stopped"};
  return names[static_cast<int>(state)];
}

inline const char * name_of(Fault fault)
{
  static const char * const names[] = {
    "shutdown", "held up, or the clock has jumped", "no measurement", "measurements too late", "no feedforward",
    "reference discontinuity", "feedforward beyond limits", "velocity violation", "tracking error",
    "effort saturated", "effort discontinuity", "none"};
  return names[static_cast<int>(fault)];
}

inline const char * name_of(Obstacle obstacle)
{
  static const char * const names[] = {
    "none", "a check fails", "all has been sound for a moment only",
    "start pose invalid: where the robot stands is not known",
    "start pose invalid: the feedforward holds no motor positions", "start pose invalid: not where the robot stands",
    "start pose invalid: not as fast as the robot", "nobody takes the commands"};
  return names[static_cast<int>(obstacle)];
}

// What a check has found: which joint (or -1), the number, and what it may be.
struct Found
{
  Fault fault = Fault::kNone;
  int joint = -1;
  double value = 0.0;
  double limit = 0.0;
};

// A change of state, and why.
struct Transition
{
  State before = State::kWaiting;
  State after = State::kWaiting;
  Found found;
  bool tripped = false;  // the motors let go, as the robot did not slow down
};

// What the joints may do; infinite where it is not known.
struct Limits
{
  Vector velocity;     // [rad/s]
  Vector effort;       // [N.m]
  Vector effort_rate;  // [N.m/s]
};

// Gains of the feedback on measured positions and velocities; none where empty.
struct Gains
{
  Vector proportional;  // [N.m/rad]
  Vector derivative;    // [N.m s/rad]
  bool any() const { return !proportional.empty(); }
};

// What a guard allows; the meaning of each is in guard_config.py. Times in s.
struct Config
{
  double timeout = 0.05;
  bool measured = false;
  double measurement_timeout = 0.05;
  double clock_tolerance = 0.005;
  double latency = 0.005;
  double lead = 0.0;
  double join_within = 0.05;
  double join_speed = 0.1;
  double settle = 0.1;
  double fade = 0.5;
  double speed_margin = 1.1;
  double tracking_error = 0.1;
  double resolution = 0.005;
  double reference_step = 0.005;
  double effort_step = 2.0;
  double saturation_time = 0.1;
  unsigned stop_on = kEffortLimitExceeded | kVelocityLimitExceeded | kPositionLimitExceeded | kNearSingularity;
  double deceleration = 7.5;
  double shortest_stop = 0.1;
  End end = End::kHold;
  double release_after = 1.0;
  FirstEffort first_effort = FirstEffort::kFeedforward;
};

// Position, velocity and acceleration at one instant.
struct Motion
{
  explicit Motion(std::size_t joints = 0) : position(joints), velocity(joints), acceleration(joints) {}
  Vector position, velocity, acceleration;
};

// Rows of derivatives by order, n numbers each, with room for all that may come.
struct Series
{
  Series(std::size_t joints, std::size_t most) : n(joints), numbers(joints * most) {}
  double at(std::size_t order, std::size_t joint) const { return numbers[order * n + joint]; }

  std::size_t n;
  std::size_t rows = 0;
  Vector numbers;
};

inline double power(double h, std::size_t exponent)
{
  double result = 1.0;
  for (; exponent > 0; --exponent) {
    result *= h;
  }
  return result;
}

inline double factorial(std::size_t k)
{
  double result = 1.0;
  for (; k > 1; --k) {
    result *= static_cast<double>(k);
  }
  return result;
}

// The derivative `order` of a joint's series at a distance h [s].
inline double taylor(const Series & series, std::size_t order, std::size_t joint, double h)
{
  double sum = 0.0;
  for (std::size_t k = 0; order + k < series.rows; ++k) {
    sum += power(h, k) / factorial(k) * series.at(order + k, joint);
  }
  return sum;
}
}  // namespace hodyn_ros::guard
