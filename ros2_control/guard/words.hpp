// The words of the guard between feedforwards and motors that are not in table.hpp: its numbers, and why it is in its
// state.
//
// The guard is C++17 without the standard library of C++: no heap, no exceptions, no virtual call. It needs fabs, exp and
// nearbyint, and what copies and clears memory, so that it runs in a microcontroller as it does in ros2_control. Rows of
// numbers have a fixed capacity, HODYN_GUARD_JOINTS and HODYN_GUARD_ROWS, on which all files of a program must agree.

#pragma once

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "table.hpp"

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "the guard has to see NaN: compile it without -ffast-math and -ffinite-math-only"
#endif
#ifndef HODYN_GUARD_JOINTS
#define HODYN_GUARD_JOINTS 128
#endif
#ifndef HODYN_GUARD_ROWS
#define HODYN_GUARD_ROWS 12
#endif

namespace hodyn_ros::guard
{
constexpr size_t kMostJoints = HODYN_GUARD_JOINTS;  // that a guard can hold
constexpr size_t kMostRows = HODYN_GUARD_ROWS;      // derivatives of efforts or positions that it takes, from 0 on
static_assert(kMostJoints >= 1 && kMostRows >= 3, "a guard needs room for position, velocity and acceleration of a joint");

using Instant = int64_t;  // [ns] of the outer clock

inline bool is_finite(double x) { return fabs(x) <= DBL_MAX; }
inline bool is_nan(double x) { return x != x; }
// By how many bytes memory lies past an address where numbers may begin; ARM of 32 bit ends a program that uses it.
inline size_t misaligned(const void * memory, size_t alignment = alignof(double))
{
  return reinterpret_cast<uintptr_t>(memory) % alignment;
}
template <class T>
T least_of(T a, T b)
{
  return b < a ? b : a;
}
template <class T>
T most_of(T a, T b)
{
  return a < b ? b : a;
}

// `n` values, zero at first, in room for kMostJoints. A copy costs as much as its values, not its room.
template <class T>
class Row
{
public:
  Row() = default;
  explicit Row(size_t n, T value = T()) : n_(least_of(n, kMostJoints)) { fill(value); }
  Row(const T * begin, const T * end) : n_(least_of(static_cast<size_t>(end - begin), kMostJoints))
  {
    for (size_t j = 0; j < n_; ++j) {
      values_[j] = begin[j];
    }
  }
  Row(const Row & other) : Row(other.begin(), other.end()) {}
  Row & operator=(const Row & other)
  {
    n_ = other.n_;
    for (size_t j = 0; j < n_; ++j) {
      values_[j] = other.values_[j];
    }
    return *this;
  }

  void fill(T value)
  {
    for (T & own : *this) {
      own = value;
    }
  }
  template <class Is>
  bool all(Is is) const
  {
    for (const T & own : *this) {
      if (!is(own)) {
        return false;
      }
    }
    return true;
  }
  size_t size() const { return n_; }
  bool empty() const { return n_ == 0; }
  T & operator[](size_t j) { return values_[j]; }
  const T & operator[](size_t j) const { return values_[j]; }
  T * data() { return values_; }
  const T * data() const { return values_; }
  T * begin() { return values_; }
  T * end() { return values_ + n_; }
  const T * begin() const { return values_; }
  const T * end() const { return values_ + n_; }

private:
  T values_[kMostJoints] = {};
  size_t n_ = 0;
};
using Vector = Row<double>;  // one number for each joint

// A value, or none.
template <class T>
class Optional
{
public:
  Optional() = default;
  Optional(const T & value) : known_(true), value_(value) {}
  explicit operator bool() const { return known_; }
  const T & operator*() const { return value_; }
  const T * operator->() const { return &value_; }
  bool operator==(const T & value) const { return known_ && value_ == value; }
  bool operator!=(const T & value) const { return !(*this == value); }
  void reset() { known_ = false; }

private:
  bool known_ = false;
  T value_ = T();
};

// What `value` was, which is `next` from now on.
template <class T>
T exchange(T & value, const T & next)
{
  const T before = value;
  value = next;
  return before;
}

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

using Found = Optional<Reason>;

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
  Vector lower, upper;  // ends of the range of the joints [rad], which a stop keeps if it can

  // How fast an effort may change [N.m/s]; where no rate is known, it follows from the size of the drive: what lets a
  // small robot through would cut the feedback of a large one, which then swings.
  double believed_effort_rate(size_t j) const
  {
    const double rate = effort_rate[j] == kInfinite ? rate_of_size(j) : effort_rate[j];
    return rate == kInfinite ? DBL_MIN : rate;
  }
  // By how much a feedforward may step [N.m]: `least`, or more for large drives.
  double effort_step(size_t j, double least) const
  {
    const double rate = rate_of_size(j);
    return rate == kInfinite ? least : most_of(least, effort_limiter::kMillisecond * rate);
  }
  double rate_of_size(size_t j) const { return effort[j] / effort_limiter::kFullWithin; }
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
  explicit Motion(size_t joints = 0) : position(joints), velocity(joints), acceleration(joints) {}
  Vector position, velocity, acceleration;
};

// Efforts of a motion whose motors are ahead of their links by a deflection, in the sense of those of the feedforward;
// none where `compute` is null. `context` is handed on.
struct EffortModel
{
  explicit operator bool() const { return compute != nullptr; }
  void operator()(const Motion & motion, const Motion & deflection, Vector & effort) const
  {
    compute(context, motion, deflection, effort.data());
  }

  void (*compute)(void * context, const Motion & motion, const Motion & deflection, double * effort) = nullptr;
  void * context = nullptr;
};

// Rows of derivatives by order, n numbers each.
struct Series
{
  explicit Series(size_t joints) : n(least_of(joints, kMostJoints)) {}
  double at(size_t order, size_t joint) const { return numbers[order * n + joint]; }

  // Take `count` rows, no more than kMostRows.
  void assign(const double * from, size_t count)
  {
    rows = least_of(count, kMostRows);
    for (size_t i = 0; i < rows * n; ++i) {
      numbers[i] = from[i];
    }
  }

  size_t n;
  size_t rows = 0;
  double numbers[kMostRows * kMostJoints] = {};
};

inline double power(double h, size_t exponent)
{
  double result = 1.0;
  for (; exponent > 0; --exponent) {
    result *= h;
  }
  return result;
}

inline double factorial(size_t k)
{
  double result = 1.0;
  for (; k > 1; --k) {
    result *= static_cast<double>(k);
  }
  return result;
}

// The derivative `order` of a joint's series at a distance h [s].
inline double taylor(const Series & series, size_t order, size_t joint, double h)
{
  double sum = 0.0;
  for (size_t k = 0; order + k < series.rows; ++k) {
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
size_t largest(size_t joints, Number number)
{
  size_t found = 0;
  for (size_t j = 1; j < joints; ++j) {
    found = number(j) > number(found) ? j : found;
  }
  return found;
}
}  // namespace hodyn_ros::guard
