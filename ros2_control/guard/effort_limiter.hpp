// Limits of efforts and of their steps. hodyn_ros/guard/effort_limiter.py in C++.

#pragma once

#include "words.hpp"

namespace hodyn_ros::guard
{
// Refers to the limits.
class EffortLimiter
{
public:
  EffortLimiter(const Limits & limits, double step)
  : last(limits.effort.size()), limits_(limits), step_(step)
  {
  }

  // Cut finite efforts to their limits, `elapsed` [s] after the last ones.
  void operator()(Vector & effort, double elapsed)
  {
    saturated = rate_limited = false;
    for (size_t j = 0; j < effort.size(); ++j) {
      const double cut = least_of(most_of(effort[j], -limit()[j]), limit()[j]);
      saturated = saturated || cut != effort[j];
      double result = cut;
      if (known) {
        const double step = reach(j, most_of(elapsed, 0.0));
        result = least_of(most_of(cut, last[j] - step), last[j] + step);
      }
      rate_limited = rate_limited || result != cut;
      effort[j] = result;
    }
    last = effort;
    known = true;
  }

  const Vector & limit() const { return limits_.effort; }
  double step(size_t j) const { return limits_.effort_step(j, step_); }  // in a millisecond [N.m]

  Vector last;
  bool known = false;  // whether there was a last one
  bool saturated = false, rate_limited = false;

private:
  double reach(size_t j, double elapsed) const
  {
    const double often = least_of(elapsed / effort_limiter::kMillisecond, 1.0);
    return most_of(limits_.believed_effort_rate(j) * elapsed, step_ * often);
  }

  const Limits & limits_;
  double step_;
};
}  // namespace hodyn_ros::guard
