// Whether a robot moves as the commanded efforts say, by the momentum observer.
//
// hodyn_ros/guard/effort_check.py in C++.

#pragma once

#include "words.hpp"

namespace hodyn_ros::guard
{
// What acts on joints beside known efforts, by an observer that remembers the sample before; none where `step` is null.
// A sample holds of all joints position and velocity, by how much the motors are ahead of the links, the rate of that, and
// efforts, row by row. `context` is handed on.
struct Observer
{
  explicit operator bool() const { return step != nullptr; }

  // Begin at a sample before which there is none.
  void (*start)(void * context, const double * sample) = nullptr;
  // Take the one a period [s] later, for what acts besides and its deviations; false, and as it was, where that is not
  // known, as where loops do not close.
  bool (*step)(void * context, const double * sample, double period, double * efforts, double * deviations) = nullptr;
  void * context = nullptr;
  // Of the springs between motors whose positions are measured and their links, for each joint; infinite where a drive is
  // rigid, null where all are.
  const double * stiffness = nullptr;
};

// What acts on joints beside known efforts, and how much of it is no fault. Refers to the observer.
class EffortCheck
{
public:
  EffortCheck(const Observer & observer, const Vector & fastest)
  : value(fastest.size()), allowed(fastest.size(), kInfinite), observer_(observer), quickest_(fastest),
    rate_(fastest.size()), effort_(fastest.size()), bends_(fastest.size())
  {
    for (double & quickest : quickest_) {
      quickest *= effort_check::kQuickest;
    }
  }

  // Forget what was, as where efforts have not acted for a while.
  void restart()
  {
    value.fill(0.0);
    allowed.fill(kInfinite);
    known = false;
  }

  // Take a sample at an instant: the rate of the position, smoothed, the mean effort since the sample before, and by how
  // much the motors should be ahead of their links. Where the observer says nothing, it begins anew.
  void update(Instant at, const Vector & position, const Vector & rate, const Vector & effort, const Motion & bent)
  {
    const double elapsed = known ? 1e-9 * static_cast<double>(at - stamp) : kInfinite;
    const bool follows = 0.0 < elapsed && elapsed < effort_check::kLongest;
    const size_t n = value.size();
    if (follows) {
      const double smoothed = 1.0 - exp(-elapsed / effort_check::kRateOver);
      for (size_t j = 0; j < n; ++j) {
        effort_[j] += smoothed * (effort[j] - effort_[j]);
        rate_[j] += within(rate[j] - rate_[j], elapsed * quickest_[j]);
        bends_[j] += smoothed * (bent.velocity[j] - bends_[j]);
      }
    } else {
      restart();
      effort_ = effort;
      rate_ = rate;
      bends_ = bent.velocity;
    }
    for (size_t j = 0; j < n; ++j) {
      sample_[j] = position[j] - effort_check::kRateOver * rate_[j];
      sample_[n + j] = rate_[j];
      sample_[2 * n + j] = bent.position[j] - effort_check::kRateOver * bends_[j];
      sample_[3 * n + j] = bends_[j];
      sample_[4 * n + j] = effort_[j];
    }
    if (!follows) {
      observer_.start(observer_.context, sample_);
    } else if (!observer_.step(observer_.context, sample_, elapsed, value.data(), allowed.data())) {
      restart();
      return;
    } else {
      for (double & own : allowed) {
        own *= effort_check::kThreshold;
      }
    }
    stamp = at;
    known = true;
  }

  Vector value;        // what acts besides [N.m]
  Vector allowed;      // how much of it is no fault
  bool known = false;
  Instant stamp = 0;  // of the last sample, where `known`

private:
  const Observer & observer_;
  Vector quickest_, rate_, effort_, bends_;
  double sample_[5 * kMostJoints] = {};
};
}  // namespace hodyn_ros::guard
