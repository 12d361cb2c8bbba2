// Feedforwards as a stream: checked against the clock and each other, and carried on by their derivatives.
//
// hodyn_ros/guard/feedforward_stream.py in C++.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "words.hpp"

namespace hodyn_ros::guard
{
// What the motors have to follow about one instant.
struct Reference
{
  Reference(std::size_t joints, std::size_t position_rows, std::size_t effort_rows)
  : positions(joints, position_rows), efforts(joints, effort_rows)
  {
  }
  Series positions, efforts;
};

class FeedforwardStream
{
public:
  FeedforwardStream(
    std::size_t joints, std::size_t position_rows, std::size_t effort_rows, const Config & config, Vector fastest)
  : last_(joints, position_rows, effort_rows), config_(config), fastest_(std::move(fastest))
  {
  }

  // Take a feedforward; `jump` then says what does not continue the one before. While it is not `following`,
  // such a one is kept.
  Taken take(Instant now, Instant at, const Reference & reference, unsigned bits, bool following)
  {
    step = 0.0;
    smooth = true;
    if (!std::isfinite(squares(reference.positions) + squares(reference.efforts))) {
      jump = Found{Fault::kReferenceStep, -1, 0.0, 0.0};
      return Taken::kNumbers;
    }
    const double age = 1e-9 * static_cast<double>(now - at) + config_.lead;
    if (std::abs(age) > config_.timeout) {
      return Taken::kClock;
    }
    const double since = known ? 1e-9 * static_cast<double>(at - stamp) : kInfinite;
    if (since <= 0.0 && 1e-9 * static_cast<double>(stamp - now) <= config_.timeout) {
      return Taken::kClock;
    }
    if (0.0 < since && since <= 2.0 * config_.timeout) {
      if (jumps(reference.positions, since)) {
        if (!following) {
          keep(at, reference, bits);
        }
        return Taken::kJump;
      }
      compare_efforts(reference.efforts, since);
    }
    keep(at, reference, bits);
    return Taken::kYes;
  }

  bool in_time(Instant now) const
  {
    return known && std::abs(1e-9 * static_cast<double>(now - stamp) + config_.lead) <= config_.timeout;
  }

  bool has_motion() const { return positions_ > 0; }

  // The motion at an instant; it stands at zero where none is known.
  void motion(Instant instant, Motion & result) const
  {
    const double h = ahead(instant);
    for (std::size_t j = 0; j < last_.positions.n; ++j) {
      double position = positions_ > 0 ? last_.positions.at(0, j) : 0.0;
      double velocity = positions_ > 1 ? last_.positions.at(1, j) : 0.0;
      const double acceleration = positions_ > 2 ? last_.positions.at(2, j) : 0.0;
      position += h * velocity;
      position += (0.5 * h * h) * acceleration;
      velocity += h * acceleration;
      result.position[j] = position;
      result.velocity[j] = velocity;
      result.acceleration[j] = acceleration;
    }
  }

  // The efforts at an instant; zero where there are none.
  void effort(Instant instant, Vector & result) const
  {
    const double h = ahead(instant);
    for (std::size_t j = 0; j < result.size(); ++j) {
      result[j] = taylor(last_.efforts, 0, j, h);
    }
  }

  bool known = false;
  Instant stamp = 0;
  unsigned status = 0;
  double step = 0.0;   // in effort, of the last one that was taken [N.m]
  bool smooth = true;  // whether its derivatives explain it
  Found jump;

private:
  static double squares(const Series & series)
  {
    double sum = 0.0;
    for (std::size_t i = 0; i < series.rows * series.n; ++i) {
      sum += series.numbers[i] * series.numbers[i];
    }
    return sum;
  }

  static void copy(const Series & from, std::size_t rows, Series & to)
  {
    to.rows = std::min(from.rows, rows);
    std::copy_n(from.numbers.begin(), to.rows * to.n, to.numbers.begin());
  }

  void keep(Instant at, const Reference & reference, unsigned bits)
  {
    known = true;
    stamp = at;
    status = bits;
    copy(reference.positions, 3, last_.positions);
    copy(reference.efforts, reference.efforts.rows, last_.efforts);
    positions_ = last_.positions.rows;
  }

  // How far [s] to carry the series on: positions, speeds and efforts alike, either way.
  double ahead(Instant instant) const
  {
    const double h = known ? 1e-9 * static_cast<double>(instant - stamp) : 0.0;
    return std::min(std::max(h, -config_.timeout), config_.timeout);
  }

  // By how much a derivative may change when the highest known one does on the way.
  static double change(const Series & last, const Series & next, double h, std::size_t order, std::size_t joint)
  {
    const std::size_t highest = std::min(last.rows, next.rows) - 1;
    if (highest <= order) {
      return 0.0;
    }
    const std::size_t over = highest - order;
    return (std::abs(last.at(highest, joint)) + std::abs(next.at(highest, joint))) *
           (power(h, over) / factorial(over));
  }

  bool jumps(const Series & positions, double h)
  {
    const std::size_t orders = std::min({positions.rows, last_.positions.rows, std::size_t{2}});
    for (std::size_t order = 0; order < orders; ++order) {
      const double tolerance = config_.reference_step * (order == 0 ? 1.0 : 10.0);
      double worst = -kInfinite;
      for (std::size_t j = 0; j < positions.n; ++j) {
        const double off = std::abs(positions.at(order, j) - taylor(last_.positions, order, j, h));
        const double explained = std::min(
          change(last_.positions, positions, h, order, j), fastest_[j] * (order == 0 ? h : 1.0));
        if (off - explained > worst) {
          worst = off - explained;
          jump = Found{Fault::kReferenceStep, static_cast<int>(j), off, tolerance + explained};
        }
      }
      if (jump.value > jump.limit) {
        return true;
      }
    }
    return false;
  }

  void compare_efforts(const Series & efforts, double h)
  {
    if (efforts.rows == 0 || last_.efforts.rows == 0) {
      return;
    }
    bool explained = true;
    for (std::size_t j = 0; j < efforts.n; ++j) {
      const double off = std::abs(efforts.at(0, j) - taylor(last_.efforts, 0, j, h));
      step = std::max(step, off);
      explained = explained && off <= config_.effort_step + change(last_.efforts, efforts, h, 0, j);
    }
    smooth = step <= config_.effort_step || explained;
  }

  Reference last_;
  std::size_t positions_ = 0;
  const Config & config_;
  Vector fastest_;
};
}  // namespace hodyn_ros::guard
