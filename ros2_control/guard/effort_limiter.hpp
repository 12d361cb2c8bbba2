// Limits of efforts and of their steps. hodyn_ros/guard/effort_limiter.py in C++.

#pragma once

#include "words.hpp"

namespace hodyn_ros::guard
{
class EffortLimiter
{
public:
  EffortLimiter(const Vector & limit, const Vector & rate_limit, double step)
  : last(limit.size()), limit_(limit), rate_limit_(rate_limit), step_(step)
  {
  }

  // Cut finite efforts to their limits, `elapsed` [s] after the last ones.
  void operator()(Vector & effort, double elapsed)
  {
    saturated = rate_limited = false;
    for (size_t j = 0; j < effort.size(); ++j) {
      const double cut = least_of(most_of(effort[j], -limit_[j]), limit_[j]);
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

  const Vector & limit() const { return limit_; }

  Vector last;
  bool known = false;  // whether there was a last one
  bool saturated = false, rate_limited = false;

private:
  double reach(size_t j, double elapsed) const
  {
    if (rate_limit_[j] == kInfinite) {
      return kInfinite;
    }
    return most_of(rate_limit_[j] * elapsed, step_ * least_of(elapsed / effort_limiter::kMillisecond, 1.0));
  }

  Vector limit_, rate_limit_;
  double step_;
};
}  // namespace hodyn_ros::guard
