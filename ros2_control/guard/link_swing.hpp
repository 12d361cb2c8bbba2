// How far springs bend in a stop, where no feedforward says it any more.
//
// hodyn_ros/guard/link_swing.py in C++.

#pragma once

#include "words.hpp"

namespace hodyn_ros::guard
{
// Links behind motors whose positions are measured, by the springs between them:
//
//   M q'' = T_0 + K (theta - q - delta_0) - Q(q, q', 0)
//
// `stiffness` K is infinite for rigid drives; null: all are. Refers to the model, whose motors stand to give Q. A robot
// with more drives than it can move in directions does not swing here, but in Python.
class LinkSwing
{
public:
  LinkSwing(const EffortModel & model, const double * stiffness, size_t joints)
  : model_(model), stiffness_(joints, kInfinite), stand_(joints), ahead_(joints), bent_(joints), link_(joints),
    speed_(joints), begun_at_(joints), held_(joints), inertia_(joints), pivots_(joints), torques_(joints)
  {
    for (size_t j = 0; stiffness != nullptr && j < joints; ++j) {
      stiffness_[j] = stiffness[j];
    }
    swings_ = model && !stiffness_.all([](double own) { return own == kInfinite; });
  }

  // Begin at an instant with a motion of the motors, and how far they are ahead of their links.
  void begin(Instant at, const Motion & motors, const Motion & bent)
  {
    begun_ = false;
    if (!swings_) {
      return;
    }
    const size_t n = stiffness_.size();
    for (size_t j = 0; j < n; ++j) {
      link_[j] = motors.position[j] - bent.position[j];
      speed_[j] = motors.velocity[j] - bent.velocity[j];
    }
    bent_ = bent;
    begun_at_ = bent.position;
    find_torques(motors.position);
    held_ = torques_;
    for (size_t k = 0; k < n; ++k) {
      ahead_.acceleration[k] = -1.0;
      model_(stand_, ahead_, pivots_);
      ahead_.acceleration[k] = 0.0;
      for (size_t j = 0; j < n; ++j) {
        const double each = pivots_[j] - torques_[j];
        held_[j] += each * (motors.acceleration[k] - bent.acceleration[k]);
        if (j <= k) {
          matrix_[j * n + k] = each;
        }
      }
      inertia_[k] = matrix_[k * n + k];
    }
    stamp_ = at;
    begun_ = has_mass() && factorise(0.0);
  }

  // Find how far motors, measured at `motor`, are ahead of their links; false where that is not known. At instants that
  // do not go back. Of the rates, the second is left at zero.
  bool at(Instant now, const Vector & motor, Motion & bent)
  {
    if (begun_ && now > stamp_) {
      begun_ = step(1e-9 * static_cast<double>(now - stamp_), motor);
      stamp_ = now;
    }
    if (begun_) {
      bent = bent_;
    }
    return begun_;
  }

private:
  // A link without mass is where its spring is.
  bool has_mass() const
  {
    double most = 0.0;
    for (const double own : inertia_) {
      most = most_of(most, own);
    }
    return inertia_.all([&](double own) { return own > link_swing::kLeast * most; });
  }

  bool step(double elapsed, const Vector & motor)
  {
    const size_t n = stiffness_.size();
    find_torques(motor);
    for (size_t j = 0; j < n; ++j) {
      const double bends = motor[j] - link_[j] - elapsed * speed_[j] - begun_at_[j];
      torques_[j] = held_[j] + stiffness(j, elapsed) * bends - torques_[j];
    }
    if (!factorise(elapsed)) {
      return false;
    }
    solve();
    if (!torques_.all(is_finite)) {
      return false;
    }
    const double dies_out = 1.0 - exp(-elapsed / link_swing::kDiesOut);
    for (size_t j = 0; j < n; ++j) {
      speed_[j] += elapsed * torques_[j];
      link_[j] += elapsed * speed_[j];
      const double ahead = motor[j] - link_[j];
      bent_.velocity[j] = (ahead - bent_.position[j]) / elapsed;
      bent_.position[j] = ahead;
      bent_.acceleration[j] = 0.0;
      speed_[j] += dies_out * bent_.velocity[j];
    }
    return true;
  }

  // The torques of links that go on evenly where they are.
  void find_torques(const Vector & motor)
  {
    stand_.position = motor;
    for (size_t j = 0; j < motor.size(); ++j) {
      ahead_.position[j] = motor[j] - link_[j];
      ahead_.velocity[j] = -speed_[j];
    }
    model_(stand_, ahead_, torques_);
  }

  double stiffness(size_t j, double elapsed) const
  {
    return least_of(stiffness_[j], link_swing::kStiffest / (elapsed * elapsed) * inertia_[j]);
  }

  // Factorise M + elapsed^2 K as L D L^T: M stays above and on the diagonal, L goes below. Whether it is positive.
  bool factorise(double elapsed)
  {
    const size_t n = stiffness_.size();
    for (size_t j = 0; j < n; ++j) {
      double pivot = inertia_[j];
      if (elapsed > 0.0) {
        pivot += elapsed * elapsed * stiffness(j, elapsed);
      }
      for (size_t k = 0; k < j; ++k) {
        pivot -= matrix_[j * n + k] * matrix_[j * n + k] * pivots_[k];
      }
      if (!(pivot > 0.0)) {
        return false;
      }
      pivots_[j] = pivot;
      for (size_t i = j + 1; i < n; ++i) {
        double sum = matrix_[j * n + i];
        for (size_t k = 0; k < j; ++k) {
          sum -= matrix_[i * n + k] * matrix_[j * n + k] * pivots_[k];
        }
        matrix_[i * n + j] = sum / pivot;
      }
    }
    return true;
  }

  // Solve for accelerations, in place of `torques_`.
  void solve()
  {
    const size_t n = stiffness_.size();
    for (size_t j = 0; j < n; ++j) {
      for (size_t k = 0; k < j; ++k) {
        torques_[j] -= matrix_[j * n + k] * torques_[k];
      }
    }
    for (size_t j = n; j-- > 0;) {
      torques_[j] /= pivots_[j];
      for (size_t k = j + 1; k < n; ++k) {
        torques_[j] -= matrix_[k * n + j] * torques_[k];
      }
    }
  }

  const EffortModel & model_;
  Vector stiffness_;
  Motion stand_, ahead_, bent_;  // motors that stand, how far they seem to be ahead of links in motion, and are
  Vector link_, speed_;          // of the links
  Vector begun_at_;              // deflections that a stop began with
  Vector held_;                  // torques that springs gave then
  Vector inertia_, pivots_, torques_;
  double matrix_[kMostJoints * kMostJoints] = {};
  Instant stamp_ = 0;
  bool swings_ = false, begun_ = false;
};
}  // namespace hodyn_ros::guard
