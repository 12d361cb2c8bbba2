// Measurements of a robot as a stream: checked against its clock, its speed, and each other.
//
// hodyn_ros/guard/measured_motion.py in C++.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "words.hpp"

namespace hodyn_ros::guard
{
class MeasuredMotion
{
public:
  MeasuredMotion(std::size_t joints, const Config & config, Vector fastest)
  : position(joints), velocity(joints), unknown(joints, true), config_(config), fastest_(std::move(fastest)),
    turns_(joints), added_(joints)
  {
  }

  // Take a measurement, or keep the last one. `rates` may hold NaN, or be null where none are measured.
  Taken take(Instant now, Instant at, const double * positions, const double * rates)
  {
    const std::size_t n = position.size();
    const double old = 1e-9 * static_cast<double>(now - at);
    if (at == 0) {
      return Taken::kClock;
    }
    for (std::size_t j = 0; j < n; ++j) {
      if (!(std::abs(positions[j]) < 1e100)) {
        return Taken::kNumbers;
      }
    }
    if (!is_fresh(old)) {
      return Taken::kClock;
    }
    if (!fresh(now)) {
      latency = old;
      gaps += known;
    } else {
      const double elapsed = 1e-9 * static_cast<double>(at - stamp);
      if (elapsed <= 0.0) {
        return Taken::kClock;
      }
      if (!wrapped(positions, elapsed)) {
        return Taken::kJump;
      }
      for (std::size_t j = 0; j < n; ++j) {
        turns_[j] += added_[j];
      }
      latency += (old - latency) * std::min(1.0, elapsed / 0.1);
    }
    bool changed = false;
    for (std::size_t j = 0; j < n; ++j) {
      const double where = positions[j] + turns_[j];
      unknown[j] = rates == nullptr || !std::isfinite(rates[j]);
      const double speed = unknown[j] ? 0.0 : rates[j];
      changed = changed || where != position[j] || speed != velocity[j];
      position[j] = where;
      velocity[j] = speed;
    }
    if (changed) {
      unchanged_since = at;
    }
    stamp = at;
    known = true;
    return Taken::kYes;
  }

  // How old the last measurement is [s]; infinite before the first.
  double age(Instant now) const { return known ? 1e-9 * static_cast<double>(now - stamp) : kInfinite; }

  bool fresh(Instant now) const { return is_fresh(age(now)); }

  Vector position, velocity;  // without the wraps of encoders; zero where no velocity is measured
  std::vector<bool> unknown;
  bool known = false;
  Instant stamp = 0, unchanged_since = 0;
  long gaps = 0, wraps = 0;
  double latency = 0.0;  // [s] mean age

private:
  bool is_fresh(double old) const { return -config_.clock_tolerance <= old && old <= config_.measurement_timeout; }

  // Find the full turns to add to a position that has stepped; false for a jump.
  bool wrapped(const double * positions, double elapsed)
  {
    const double turn = 2.0 * 3.141592653589793;
    long count = 0;
    for (std::size_t j = 0; j < position.size(); ++j) {
      const double within = unknown[j] ? elapsed : std::min(elapsed * elapsed / 0.2, 2.0 * elapsed);
      const double allowed = fastest_[j] * within + config_.resolution;
      const double step = positions[j] + turns_[j] - position[j] - velocity[j] * elapsed;
      added_[j] = 0.0;
      if (std::abs(step) > allowed) {
        added_[j] = -turn * std::min(std::max(std::nearbyint(step / turn), -1.0), 1.0);
        if (std::abs(step + added_[j]) > allowed) {
          return false;
        }
      }
      count += added_[j] != 0.0;
    }
    wraps += count;
    return true;
  }

  const Config & config_;
  Vector fastest_, turns_, added_;
};
}  // namespace hodyn_ros::guard
