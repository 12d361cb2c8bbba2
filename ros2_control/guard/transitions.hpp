// Ways from one course to another: offsets that fade, and motions that brake, without a step.
//
// hodyn_ros/guard/transitions.py in C++, where the polynomials are derived.

#pragma once

#include "words.hpp"

namespace hodyn_ros::guard
{
// An offset and its rate that go to zero within `duration` [s] from `start` [s] on.
struct Fading
{
  explicit Fading(size_t joints) : value(joints), rate(joints) {}

  // What is left at the time t [s]; before the start it goes on evenly.
  void at(double t, Motion & left) const
  {
    const double elapsed = t - start;
    const double s = elapsed / duration;
    const double per = 1.0 / duration;
    const double rest = (1.0 - s) * (1.0 - s);
    for (size_t j = 0; j < value.size(); ++j) {
      const double ramp = rate[j] * duration;
      if (elapsed < 0.0) {
        left.position[j] = value[j] + rate[j] * elapsed;
        left.velocity[j] = rate[j];
        left.acceleration[j] = 0.0;
      } else if (s >= 1.0) {
        left.position[j] = left.velocity[j] = left.acceleration[j] = 0.0;
      } else {
        left.position[j] = value[j] * (rest * (1.0 - s) * (1.0 + 3.0 * s + 6.0 * (s * s))) +
                           ramp * (s * rest * (1.0 - s) * (1.0 + 3.0 * s));
        left.velocity[j] =
          (value[j] * (-30.0 * (s * s) * rest) + ramp * (rest * (1.0 + 2.0 * s - 15.0 * (s * s)))) * per;
        left.acceleration[j] = (value[j] * (-60.0 * s + 180.0 * (s * s) - 120.0 * (s * s * s)) +
                                ramp * (-36.0 * s + 96.0 * (s * s) - 60.0 * (s * s * s))) *
                               (per * per);
      }
    }
  }

  Vector value, rate;
  double start = 0.0, duration = 1.0;  // [s]
};

// A motion from `begin` to a standstill, from `start` [s] on; its acceleration has no step.
struct Braking
{
  explicit Braking(size_t joints) : begin(joints) {}

  // Brake from `begin` by no more than `stated` [rad/s^2], or, where that is 0, as joints are built for, and for no less
  // than `shortest` [s].
  void brake(double from, double stated, const Limits & limits, double shortest)
  {
    double gentle = 0.0, harder = 1.0;
    for (size_t j = 0; j < begin.velocity.size(); ++j) {
      const double deceleration = stated > 0.0 ? stated : deceleration_of(limits.velocity[j]);
      gentle = most_of(gentle, 1.5 * fabs(begin.velocity[j]) / deceleration);
    }
    for (size_t j = 0; j < begin.velocity.size() && !(stated > 0.0); ++j) {
      const double position = begin.position[j], way = 0.5 * gentle * fabs(begin.velocity[j]);
      const double left = begin.velocity[j] > 0.0 ? limits.upper[j] - position : position - limits.lower[j];
      if (way > most_of(left, 0.0)) {
        harder = most_of(harder, way / most_of(left, way / transitions::kHarder));
      }
    }
    start = from;
    duration = most_of(shortest, gentle / harder);
    relief = least_of(duration, transitions::kRelief);
  }

  static double deceleration_of(double highest_speed)
  {
    const double of_speed = 1.5 * highest_speed / transitions::kStandsWithin;
    return of_speed == kInfinite ? transitions::kGentle : most_of(transitions::kGentle, of_speed);
  }

  double end() const { return start + duration; }

  // The motion at the time t [s]; before the start it was even.
  void at(double t, Motion & motion) const
  {
    const double elapsed = t - start;
    const double u = least_of(elapsed / duration, 1.0), w = least_of(elapsed / relief, 1.0);
    for (size_t j = 0; j < begin.position.size(); ++j) {
      const double position = begin.position[j], velocity = begin.velocity[j], acceleration = begin.acceleration[j];
      if (elapsed < 0.0) {
        motion.position[j] = position + velocity * elapsed;
        motion.velocity[j] = velocity;
        motion.acceleration[j] = acceleration;
        continue;
      }
      const double way = velocity * duration, eased = acceleration * relief;
      motion.position[j] = position + way * (u - u * u * u + 0.5 * (u * u * u * u)) +
                           eased * relief * (w * w * (0.5 - 2.0 / 3.0 * w + 0.25 * (w * w)));
      motion.velocity[j] =
        velocity * (1.0 - 3.0 * (u * u) + 2.0 * (u * u * u)) + eased * (w * ((1.0 - w) * (1.0 - w)));
      motion.acceleration[j] =
        velocity * (6.0 * (u * u - u) / duration) + acceleration * ((1.0 - w) * (1.0 - 3.0 * w));
    }
  }

  Motion begin;
  double start = 0.0, duration = 1.0, relief = 0.1;  // [s]
};
}  // namespace hodyn_ros::guard
