// Whether a robot moves as the commanded efforts say, by the momentum observer.
//
// hodyn_ros/guard/effort_check.py in C++.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>

#include "words.hpp"

namespace hodyn_ros::guard
{
// Efforts of a motion, in the sense of those of the feedforward; none where empty. Must not allocate.
using EffortModel = std::function<void(const Motion &, Vector &)>;

// What acts on joints beside known efforts, as functions without a memory; none where empty. Must not allocate. A sample
// holds position, velocity and effort of all joints; a row begins with external efforts and their deviations.
struct Observer
{
  explicit operator bool() const { return static_cast<bool>(step); }

  std::size_t size = 0;  // numbers of a row
  // The row of a sample before which there is none; false where that cannot be.
  std::function<bool(const double * sample, double * after)> start;
  // That of a sample a period [s] after another one; `before` and `after` are two arrays.
  std::function<bool(const double * sample, double period, const double * before, double * after)> step;
};

// What acts on joints beside known efforts, and how much of it is no fault. Refers to the observer.
class EffortCheck
{
public:
  EffortCheck(const Observer & observer, const Vector & fastest)
  : value(fastest.size()), allowed(fastest.size(), kInfinite), observer_(observer), quickest_(fastest),
    rate_(fastest.size()), effort_(fastest.size()), sample_(3 * fastest.size()), before_(observer.size),
    after_(observer.size)
  {
    for (double & quickest : quickest_) {
      quickest *= effort_check::kQuickest;
    }
  }

  // Forget what was, as where efforts have not acted for a while.
  void restart()
  {
    std::fill(value.begin(), value.end(), 0.0);
    std::fill(allowed.begin(), allowed.end(), kInfinite);
    known = false;
  }

  // Take a sample at an instant: the rate of the position, smoothed, and the mean effort since the sample before. Where
  // the model says nothing, as where loops do not close, it begins anew.
  void update(Instant at, const Vector & position, const Vector & rate, const Vector & effort)
  {
    const double elapsed = known ? 1e-9 * static_cast<double>(at - stamp) : kInfinite;
    const bool follows = 0.0 < elapsed && elapsed < effort_check::kLongest;
    const std::size_t n = value.size();
    if (follows) {
      const double smoothed = 1.0 - std::exp(-elapsed / effort_check::kRateOver);
      for (std::size_t j = 0; j < n; ++j) {
        effort_[j] += smoothed * (effort[j] - effort_[j]);
        rate_[j] += within(rate[j] - rate_[j], elapsed * quickest_[j]);
      }
    } else {
      restart();
      effort_ = effort;
      rate_ = rate;
    }
    for (std::size_t j = 0; j < n; ++j) {
      sample_[j] = position[j] - effort_check::kRateOver * rate_[j];
      sample_[n + j] = rate_[j];
      sample_[2 * n + j] = effort_[j];
    }
    const bool done = follows ? observer_.step(sample_.data(), elapsed, before_.data(), after_.data())
                              : observer_.start(sample_.data(), after_.data());
    if (!done) {
      restart();
      return;
    }
    std::swap(before_, after_);
    for (std::size_t j = 0; follows && j < n; ++j) {
      value[j] = before_[j];
      allowed[j] = effort_check::kThreshold * before_[n + j];
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
  Vector quickest_, rate_, effort_, sample_, before_, after_;
};
}  // namespace hodyn_ros::guard
