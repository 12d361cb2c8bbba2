// Measurements of a robot as a stream: checked against its clock, its speed, and each other.
//
// hodyn_ros/guard/measured_motion.py in C++.

#pragma once

#include "words.hpp"

namespace hodyn_ros::guard
{
class MeasuredMotion
{
public:
  MeasuredMotion(size_t joints, const Config & config, const Vector & fastest)
  : position(joints), velocity(joints), rate(joints), unknown(joints, true), standing(joints),
    disagreement(joints), speed(joints), config_(config), fastest_(fastest), most_(fastest_), turns_(joints),
    added_(joints), seen_position_(joints, static_cast<double>(NAN)), seen_rate_(joints)
  {
    for (double & most : most_) {
      most = least_of(measured_motion::kFastest * most, measured_motion::kHuge);
    }
  }

  // Take a measurement, or keep the last one. `rates` may hold NaN, or be null where none are measured.
  Taken take(Instant now, Instant at, const double * positions, const double * rates)
  {
    const double old = 1e-9 * static_cast<double>(now - at);
    if (at == 0) {
      return Taken::kClock;
    }
    if (!is_fresh(old)) {
      return Taken::kClock;
    }
    see(now, at, positions, rates);
    if (!possible(positions, rates)) {
      return Taken::kNumbers;
    }
    if (!fresh(now)) {  // what was known is too old to say anything, or the clock has been set back
      latency = old;
      gaps += known;
      begin(rates);
    } else {
      const double elapsed = 1e-9 * static_cast<double>(at - stamp);
      if (elapsed <= 0.0) {
        return Taken::kClock;
      }
      if (!wrapped(positions, elapsed)) {
        return Taken::kJump;
      }
      latency += (old - latency) * least_of(1.0, elapsed / measured_motion::kMeanOver);
      compare(positions, rates, elapsed);
    }
    for (size_t j = 0; j < position.size(); ++j) {
      position[j] = positions[j] + turns_[j];
      unknown[j] = is_unknown(rates, j);
      velocity[j] = unknown[j] ? rate[j] : rates[j];
    }
    stamp = at;
    known = true;
    return Taken::kYes;
  }

  // How the signals of a joint contradict each other, nothing where they agree.
  Found contradiction() const
  {
    const size_t n = position.size();
    const auto least = [this](size_t j) {
      return 2.0 * config_.resolution + (measured_motion::kSlack * measured_motion::kComparedOver) * fabs(rate[j]);
    };
    const auto apart = [&](size_t j) { return fabs(disagreement[j]) - least(j); };
    if (const size_t j = largest(n, apart); apart(j) > 0.0) {
      return Reason{Cause::kContradiction, static_cast<int>(j), fabs(disagreement[j]), least(j)};
    }
    const auto moved = [this](size_t j) { return fabs(standing[j]); };
    if (const size_t j = largest(n, moved); moved(j) > config_.resolution) {
      return Reason{Cause::kFrozen, static_cast<int>(j), moved(j), config_.resolution};
    }
    return {};
  }

  // How old the last measurement is [s]; infinite before the first.
  double age(Instant now) const { return known ? 1e-9 * static_cast<double>(now - stamp) : kInfinite; }

  bool fresh(Instant now) const { return is_fresh(age(now)); }

  // Whether `speed` is that of now.
  bool seen_lately(Instant now) const { return has_seen && is_fresh(1e-9 * static_cast<double>(now - seen)); }

  // Whether no measurement was rejected for a joint since the last one.
  bool whole() const { return known && has_seen && seen == stamp; }

  Vector position;            // without the wraps of encoders
  Vector velocity;            // `rate` where it is not measured
  Vector rate;                // of the positions, from their differences
  Row<bool> unknown;       // whether no velocity came
  Vector standing;            // way by velocities while a position stays the same
  Vector disagreement;        // of positions and velocities lately [rad]
  Vector speed;               // of each joint by itself, 0 where nothing confirms it
  bool known = false, has_seen = false;
  Instant stamp = 0;
  Instant seen = 0;           // stamp of the last measurement that `speed` is from
  Reason jump;  // of the last measurement that was no possible motion
  long gaps = 0, wraps = 0;
  double latency = 0.0;  // [s] mean age

private:
  static bool is_unknown(const double * rates, size_t j) { return rates == nullptr || is_nan(rates[j]); }

  bool is_fresh(double old) const { return -config_.clock_tolerance <= old && old <= config_.measurement_timeout; }

  static bool is_number(double value) { return fabs(value) < measured_motion::kHuge; }

  bool possible(const double * positions, const double * rates) const
  {
    for (size_t j = 0; j < position.size(); ++j) {
      if (!is_number(positions[j]) || !(is_unknown(rates, j) || is_number(rates[j]))) {
        return false;
      }
    }
    return true;
  }

  // Follow the speed of each joint by itself, whatever other joints say; measured_motion.py says how.
  void see(Instant now, Instant at, const double * positions, const double * rates)
  {
    const double elapsed = seen_lately(now) ? 1e-9 * static_cast<double>(at - seen) : kInfinite;
    if (elapsed <= 0.0) {
      return;
    }
    const double share = 1.0 - exp(-elapsed / measured_motion::kSeenOver);
    for (size_t j = 0; j < position.size(); ++j) {
      const bool is_known = is_number(positions[j]) && !is_unknown(rates, j) && is_number(rates[j]);
      const double own = is_known ? rates[j] : 0.0;
      const double step = is_known ? positions[j] - seen_position_[j] : static_cast<double>(NAN);
      const bool went = fabs(step) <= most_[j] * elapsed + config_.resolution;
      double & its_rate = seen_rate_[j];
      its_rate += share * ((went ? step : 0.0) / elapsed - its_rate);
      const bool alike = fabs(own - its_rate) <= measured_motion::kSwing * fastest_[j];
      speed[j] = alike || fabs(own) < fabs(its_rate) ? own : its_rate;
      seen_position_[j] = is_known ? positions[j] : static_cast<double>(NAN);
    }
    seen = at;
    has_seen = true;
  }

  void begin(const double * rates)
  {
    for (size_t j = 0; j < position.size(); ++j) {
      rate[j] = is_unknown(rates, j) ? 0.0 : rates[j];
      standing[j] = disagreement[j] = 0.0;
    }
  }

  // Hold positions against the last ones, and both against velocities; measured_motion.py has the formula.
  void compare(const double * positions, const double * rates, double elapsed)
  {
    const double share = 1.0 - exp(-elapsed / effort_check::kRateOver);
    const double left = exp(-elapsed / measured_motion::kComparedOver);
    const double left_standing = exp(-elapsed / measured_motion::kStandingOver);
    for (size_t j = 0; j < position.size(); ++j) {
      const double step = positions[j] + turns_[j] - position[j];
      rate[j] += share * (step / elapsed - rate[j]);
      double way = step;
      if (!is_unknown(rates, j)) {
        way = 0.5 * (within(velocity[j], most_[j]) + within(rates[j], most_[j])) * elapsed;
      }
      disagreement[j] = left * (disagreement[j] + step - way);
      standing[j] = step == 0.0 ? left_standing * (standing[j] + way) : 0.0;
    }
  }

  // Take back the full turns by which positions have stepped; false for a jump.
  bool wrapped(const double * positions, double elapsed)
  {
    using measured_motion::kTurn;
    long count = 0;
    const double from_rest = least_of(elapsed * elapsed / measured_motion::kSpeedUp, 2.0 * elapsed);
    for (size_t j = 0; j < position.size(); ++j) {
      // where the speed is known, only its change is not
      const double allowed = fastest_[j] * (unknown[j] ? elapsed : from_rest) + config_.resolution;
      const double step = positions[j] + turns_[j] - position[j];
      const double by_velocity = step - (unknown[j] ? 0.0 : within(velocity[j], most_[j])) * elapsed;
      const double by_rate = step - rate[j] * elapsed;
      const double off = fabs(by_rate) < fabs(by_velocity) ? by_rate : by_velocity;
      added_[j] = 0.0;
      if (fabs(off) > allowed) {
        // a joint that stands, as its velocity was false, has not wrapped
        added_[j] = fabs(step) > 0.5 * kTurn ? -kTurn * within(nearbyint(off / kTurn), 1.0) : 0.0;
        if (fabs(off + added_[j]) > allowed) {
          jump = {Cause::kContradiction, static_cast<int>(j), off, allowed};
          return false;
        }
      }
      count += added_[j] != 0.0;
    }
    wraps += count;
    for (size_t j = 0; j < position.size(); ++j) {
      turns_[j] += added_[j];
    }
    return true;
  }

  const Config & config_;
  Vector fastest_, most_, turns_, added_;
  Vector seen_position_;  // as it came, NaN where it is no number
  Vector seen_rate_;
};
}  // namespace hodyn_ros::guard
