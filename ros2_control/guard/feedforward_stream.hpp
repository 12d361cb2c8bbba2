// Feedforwards as a stream: checked against clock, model and each other, carried on by their derivatives.
//
// hodyn_ros/guard/feedforward_stream.py in C++.

#pragma once

#include "effort_check.hpp"
#include "words.hpp"

namespace hodyn_ros::guard
{
// What the motors have to follow about one instant.
struct Reference
{
  explicit Reference(size_t joints) : positions(joints), efforts(joints), deflection(joints) {}
  Series positions, efforts;
  Motion deflection;  // by how much the motors are ahead of their links
};

// Refers to configuration, limits and model.
class FeedforwardStream
{
public:
  FeedforwardStream(
    size_t joints, const Config & config, const Vector & fastest, const Limits & limits, const EffortModel & model)
  : beside(joints), last_(joints), config_(config), fastest_(fastest),
    limits_(limits), model_(model), new_beside_(joints),
    motion_(joints), apart_{Vector(joints), Vector(joints)}
  {
    watches_ = !limits_.mismatch.all([](double most) { return !is_finite(most); });
  }

  // Take a feedforward; for what cannot be used, or does not continue the one before, `fault` then says why. While it
  // is not `following`, one that does not continue the one before is kept.
  Taken take(Instant now, Instant at, const Reference & reference, unsigned bits, bool following)
  {
    step = 0.0;
    smooth = true;
    fault = Reason{Cause::kReferenceStep};
    const double of_springs = squares(reference.deflection);
    if (!is_finite(squares(reference.positions) + squares(reference.efforts) + of_springs)) {
      return Taken::kNumbers;
    }
    const double age = 1e-9 * static_cast<double>(now - at) + config_.lead;
    if (fabs(age) > config_.timeout) {
      return Taken::kClock;
    }
    const double since = known ? 1e-9 * static_cast<double>(at - stamp) : kInfinite;
    if (since <= 0.0 && 1e-9 * static_cast<double>(stamp - now) <= config_.timeout) {
      return Taken::kClock;
    }
    // of motions, acceleration alone: a velocity is for the guard to look at
    if (!possible(reference.positions, 1, 3, fastest_) || !possible(reference.efforts, 0, kAll, limits_.effort)) {
      return Taken::kNumbers;
    }
    const bool goes_on = 0.0 < since && since <= 2.0 * config_.timeout;
    has_beside = has_beside && goes_on;
    Found jump = goes_on ? find_jump(reference.positions, since) : Found();
    if (!jump && goes_on) {
      jump = find_parting(reference.positions, since);
    }
    // a robot with loops would look for a pose that is far away, or none, for longer than drives wait
    const bool explained = !jump && find_unexplained(reference);
    if (explained) {
      jump = find_change_beside(following);
    }
    if (jump) {
      fault = *jump;
      if (!following) {  // what it says of efforts is no measure of the next one
        keep(at, reference, bits, false, kInfinite);
      }
      return Taken::kJump;
    }
    if (goes_on) {
      compare_efforts(reference.efforts, since);
    }
    keep(at, reference, bits, explained, goes_on ? since : kInfinite);
    return Taken::kYes;
  }

  bool in_time(Instant now) const
  {
    return known && fabs(1e-9 * static_cast<double>(now - stamp) + config_.lead) <= config_.timeout;
  }

  bool has_motion() const { return positions_ > 0; }

  // The motion at an instant; it stands at zero where none is known.
  void motion(Instant instant, Motion & result) const
  {
    const Series & rows = last_.positions;
    for (size_t j = 0; j < rows.n; ++j) {
      result.position[j] = positions_ > 0 ? rows.at(0, j) : 0.0;
      result.velocity[j] = positions_ > 1 ? rows.at(1, j) : 0.0;
      result.acceleration[j] = positions_ > 2 ? rows.at(2, j) : 0.0;
    }
    carry_on(result, ahead(instant));
  }

  // By how much the motors are ahead of their links at an instant.
  void deflection(Instant instant, Motion & result) const
  {
    result = last_.deflection;
    carry_on(result, ahead(instant));
  }

  // The efforts at an instant; zero where there are none.
  void effort(Instant instant, Vector & result) const
  {
    const double h = ahead(instant);
    for (size_t j = 0; j < result.size(); ++j) {
      result[j] = taylor(last_.efforts, 0, j, h);
    }
  }

  bool known = false;
  Instant stamp = 0;
  unsigned status = 0;
  double step = 0.0;   // in effort, of the last one that was taken [N.m]
  bool smooth = true;  // whether its derivatives explain it
  Reason fault;        // of the last one that was not taken, but for its clock
  bool has_beside = false;
  Vector beside;       // mean of the efforts that the model does not explain [N.m], where there is one

private:
  static constexpr size_t kAll = static_cast<size_t>(-1);

  static void carry_on(Motion & motion, double h)
  {
    for (size_t j = 0; j < motion.position.size(); ++j) {
      motion.position[j] += h * motion.velocity[j];
      motion.position[j] += (0.5 * h * h) * motion.acceleration[j];
      motion.velocity[j] += h * motion.acceleration[j];
    }
  }

  static double squares(const Motion & motion)
  {
    double sum = 0.0;
    for (size_t j = 0; j < motion.position.size(); ++j) {
      sum += motion.position[j] * motion.position[j] + motion.velocity[j] * motion.velocity[j] +
             motion.acceleration[j] * motion.acceleration[j];
    }
    return sum;
  }

  static double squares(const Series & series)
  {
    double sum = 0.0;
    for (size_t i = 0; i < series.rows * series.n; ++i) {
      sum += series.numbers[i] * series.numbers[i];
    }
    return sum;
  }

  // How far a motion has gone away from its own derivatives, by what steps are more, or less, than the derivatives
  // at both of their ends say.
  Found find_parting(const Series & positions, double h)
  {
    using namespace feedforward_stream;
    const Series & last = last_.positions;
    const size_t rows = least_of(positions.rows, last.rows);  // the last has three at most
    for (size_t order = 0; order + 1 < rows; ++order) {
      const double tolerance = kApart * config_.reference_step * (order == 0 ? 1.0 : kVelocity);
      Vector & apart = apart_[order];
      size_t worst = 0;
      for (size_t j = 0; j < positions.n; ++j) {
        const double one = last.at(order + 1, j), two = positions.at(order + 1, j);
        const double way = positions.at(order, j) - last.at(order, j);
        const double outside = way - least_of(most_of(way, h * least_of(one, two)), h * most_of(one, two));
        apart[j] = exp(-h / kComparedOver) * (apart[j] + outside);
        worst = fabs(apart[j]) > fabs(apart[worst]) ? j : worst;
      }
      if (fabs(apart[worst]) > tolerance) {
        return Reason{Cause::kReferenceStep, static_cast<int>(worst), fabs(apart[worst]), tolerance};
      }
    }
    return {};
  }

  void keep(Instant at, const Reference & reference, unsigned bits, bool explained, double since)
  {
    stamp = at;
    known = true;
    status = bits;
    last_.positions.assign(reference.positions.numbers, least_of(reference.positions.rows, size_t{3}));
    last_.efforts.assign(reference.efforts.numbers, reference.efforts.rows);
    positions_ = last_.positions.rows;
    last_.deflection = reference.deflection;
    if (since == kInfinite) {
      for (Vector & apart : apart_) {
        apart.fill(0.0);
      }
    }
    if (!explained || !has_beside || since == kInfinite) {
      has_beside = explained;
      beside = new_beside_;
      return;
    }
    const double share = 1.0 - exp(-since / feedforward_stream::kUnexplainedOver);
    for (size_t j = 0; j < beside.size(); ++j) {
      beside[j] += share * (new_beside_[j] - beside[j]);
    }
  }

  // How far [s] to carry the series on: positions, speeds and efforts alike, either way.
  double ahead(Instant instant) const
  {
    return within(known ? 1e-9 * static_cast<double>(instant - stamp) : 0.0, config_.timeout);
  }

  // Whether no derivative would take a joint within a moment beyond what it can do; rows from `first` on.
  bool possible(const Series & rows, size_t first, size_t end, const Vector & most)
  {
    const double h = least_of(config_.timeout, feedforward_stream::kHorizon);
    for (size_t order = 1; first + order < least_of(end, rows.rows); ++order) {
      for (size_t j = 0; j < rows.n; ++j) {
        const double size = fabs(rows.at(first + order, j));
        const double allowed = feedforward_stream::kTwice * most[j] * (factorial(order) / power(h, order));
        if (size > allowed) {
          fault = Reason{Cause::kReferenceStep, static_cast<int>(j), size, allowed};
          return false;
        }
      }
    }
    return true;
  }

  // By how much a derivative may change when the highest known one does on the way.
  static double change(const Series & last, const Series & next, double h, size_t order, size_t joint)
  {
    const size_t rows = least_of(last.rows, next.rows);
    if (rows <= order + 1) {
      return 0.0;
    }
    const size_t highest = rows - 1, over = highest - order;
    return (fabs(last.at(highest, joint)) + fabs(next.at(highest, joint))) *
           (power(h, over) / factorial(over));
  }

  // By how much a motion does not continue the last one.
  Found find_jump(const Series & positions, double h) const
  {
    // what either leaves out is followed as zero
    const size_t orders = least_of(most_of(positions.rows, last_.positions.rows), size_t{2});
    for (size_t order = 0; order < orders; ++order) {
      const double tolerance = config_.reference_step * (order == 0 ? 1.0 : feedforward_stream::kVelocity);
      const auto off = [&](size_t j) {
        return fabs(taylor(positions, order, j, 0.0) - taylor(last_.positions, order, j, h));
      };
      // what a changed derivative explains, but no more than the joint can do
      const auto explained = [&](size_t j) {
        return least_of(change(last_.positions, positions, h, order, j), fastest_[j] * (order == 0 ? h : 1.0));
      };
      const size_t j = largest(positions.n, [&](size_t i) { return off(i) - explained(i); });
      if (off(j) > tolerance + explained(j)) {
        return Reason{Cause::kReferenceStep, static_cast<int>(j), off(j), tolerance + explained(j)};
      }
    }
    return {};
  }

  // Find the efforts that the model does not explain; false without a model or a motion.
  bool find_unexplained(const Reference & reference)
  {
    if (!watches_ || !model_ || reference.positions.rows < 3 || reference.efforts.rows == 0) {
      return false;
    }
    for (size_t j = 0; j < reference.positions.n; ++j) {
      motion_.position[j] = reference.positions.at(0, j);
      motion_.velocity[j] = reference.positions.at(1, j);
      motion_.acceleration[j] = reference.positions.at(2, j);
    }
    model_(motion_, reference.deflection, new_beside_);
    for (size_t j = 0; j < new_beside_.size(); ++j) {
      new_beside_[j] = reference.efforts.at(0, j) - new_beside_[j];
    }
    return true;
  }

  // By how much the efforts have changed without the motion.
  Found find_change_beside(bool following) const
  {
    const bool from_nothing = !following;  // nothing has been believed yet
    const auto changed = [&](size_t j) { return fabs(new_beside_[j] - (from_nothing ? 0.0 : beside[j])); };
    const size_t j = largest(beside.size(), [&](size_t i) { return changed(i) - limits_.mismatch[i]; });
    if (!(from_nothing || has_beside) || !(changed(j) > limits_.mismatch[j])) {
      return {};
    }
    return Reason{Cause::kEffortStep, static_cast<int>(j), changed(j), limits_.mismatch[j]};
  }

  void compare_efforts(const Series & efforts, double h)
  {
    if (efforts.rows == 0 || last_.efforts.rows == 0) {
      return;
    }
    for (size_t j = 0; j < efforts.n; ++j) {
      const double off = fabs(efforts.at(0, j) - taylor(last_.efforts, 0, j, h));
      step = most_of(step, off);
      const double allowed = limits_.effort_step(j, config_.effort_step);
      smooth = smooth && off <= allowed + change(last_.efforts, efforts, h, 0, j);
    }
  }

  Reference last_;
  size_t positions_ = 0;
  const Config & config_;
  Vector fastest_;
  const Limits & limits_;
  const EffortModel & model_;
  bool watches_ = false;
  Vector new_beside_;  // as `beside`, of the feedforward that is looked at
  Motion motion_;
  Vector apart_[2];  // of positions and velocities from their derivatives, lately
};
}  // namespace hodyn_ros::guard
