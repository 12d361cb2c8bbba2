// Limits of efforts and of their steps. hodyn_ros/guard/effort_limiter.py in C++.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "words.hpp"

namespace hodyn_ros::guard
{
class EffortLimiter
{
public:
  EffortLimiter(Vector limit, Vector rate_limit, double step)
  : last(limit.size()), limit_(std::move(limit)), rate_limit_(std::move(rate_limit)), step_(step)
  {
  }

  // Cut finite efforts to their limits, `elapsed` [s] after the last ones.
  void operator()(Vector & effort, double elapsed)
  {
    saturated = rate_limited = false;
    for (std::size_t j = 0; j < effort.size(); ++j) {
      const double cut = std::min(std::max(effort[j], -limit_[j]), limit_[j]);
      saturated = saturated || cut != effort[j];
      double result = cut;
      if (known) {
        const double step = reach(j, std::max(elapsed, 0.0));
        result = std::min(std::max(cut, last[j] - step), last[j] + step);
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
  double reach(std::size_t j, double elapsed) const
  {
    if (std::isinf(rate_limit_[j])) {
      return kInfinite;
    }
    return std::max(rate_limit_[j] * elapsed, step_ * std::min(elapsed / effort_limiter::kMillisecond, 1.0));
  }

  Vector limit_, rate_limit_;
  double step_;
};
}  // namespace hodyn_ros::guard
