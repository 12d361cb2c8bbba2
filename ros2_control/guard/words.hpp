// The words of the guard between feedforwards and motors that are not in table.hpp: its numbers, and why it is in its
// state.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "table.hpp"

namespace hodyn_ros::guard
{
using Vector = std::vector<double>;   // one number for each joint
using Instant = std::int64_t;         // [ns] of the outer clock

// Whether a measurement or a feedforward was taken, or else what is wrong with it.
enum class Taken : int { kYes, kClock, kNumbers, kJump };

// Why a state was entered, or is not left: which joint (or -1), what was found, and what is allowed, in SI units.
struct Reason
{
  bool is_fault() const { return static_cast<int>(cause) < kFaults; }

  Cause cause = Cause::kNothingCame;
  int joint = -1;
  double value = 0.0;
  double limit = 0.0;
  bool tripped = false;  // the motors let go at once, the one step of the effort that is allowed
};

// A change of state, and why.
struct Transition
{
  State before = State::kWaiting;
  State after = State::kWaiting;
  Reason reason;
};

// What the joints may do; infinite where it is not known.
struct Limits
{
  Vector velocity;     // [rad/s]
  Vector effort;       // [N.m]
  Vector effort_rate;  // [N.m/s]
  Vector mismatch;     // of efforts and motion, allowed [N.m]
};

// Gains of the feedback on measured positions and velocities; none where empty.
struct Gains
{
  Vector proportional;  // [N.m/rad]
  Vector derivative;    // [N.m s/rad]
  bool any() const { return !proportional.empty(); }
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

// A number, no further from zero than `most`.
inline double within(double value, double most)
{
  return value > most ? most : value < -most ? -most : value;
}

// The joint of which `number` says most, the first of several.
template <class Number>
std::size_t largest(std::size_t joints, Number number)
{
  std::size_t found = 0;
  for (std::size_t j = 1; j < joints; ++j) {
    found = number(j) > number(found) ? j : found;
  }
  return found;
}
}  // namespace hodyn_ros::guard
