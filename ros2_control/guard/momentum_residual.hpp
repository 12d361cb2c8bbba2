// What acts on the joints beside the commanded efforts, by the momentum of links and rotors.
//
// hodyn_ros/guard/momentum_residual.py in C++, where the formula is derived.

#pragma once

#include "words.hpp"

namespace hodyn_ros::guard
{
// The residual r of joints under known efforts, r' = L (tau_ext - r). Refers to the model.
class MomentumResidual
{
public:
  MomentumResidual(const EffortModel & model, const Vector & fastest)
  : value(fastest.size()), model_(model), quickest_(fastest), effort_(fastest.size()), beside_(fastest.size()),
    motion_(fastest.size())
  {
    for (double & quickest : quickest_) {
      quickest *= momentum_residual::kQuickest;
    }
  }

  // Forget what was, as where efforts have not acted for a while.
  void restart()
  {
    value.fill(0.0);
    known = false;
  }

  // Take a sample at an instant: the rate of the position, smoothed, and the mean effort since the sample before.
  void update(Instant at, const Vector & position, const Vector & rate, const Vector & effort)
  {
    const double elapsed = known ? 1e-9 * static_cast<double>(at - stamp) : kInfinite;
    if (!(0.0 < elapsed && elapsed < momentum_residual::kLongest)) {
      value.fill(0.0);
      effort_ = effort;
    } else {
      const double smoothed = 1.0 - exp(-elapsed / momentum_residual::kRateOver);
      const double share = 1.0 - exp(-momentum_residual::kGain * elapsed);
      for (size_t j = 0; j < value.size(); ++j) {
        effort_[j] += smoothed * (effort[j] - effort_[j]);
        motion_.acceleration[j] = within((rate[j] - motion_.velocity[j]) / elapsed, quickest_[j]);
      }
      motion_.position = position;
      motion_.velocity = rate;
      model_(motion_, beside_);
      for (size_t j = 0; j < value.size(); ++j) {
        value[j] += share * (beside_[j] - effort_[j] - value[j]);
      }
    }
    motion_.velocity = rate;
    stamp = at;
    known = true;
  }

  Vector value;  // [N.m]
  bool known = false;
  Instant stamp = 0;  // of the last sample, where `known`

private:
  const EffortModel & model_;
  Vector quickest_, effort_, beside_;
  Motion motion_;  // of the last sample
};
}  // namespace hodyn_ros::guard
