// Between feedforwards and motors: nothing false is commanded, and whatever fails has a defined end.
//
// hodyn_ros/guard/command_guard.py in C++, call for call: test/guard/test_guard_in_cpp.py holds the two
// against each other on the same streams. It neither allocates nor locks after its construction, and knows
// nothing of ROS. docs/safety.md describes its states and checks.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>

#include "effort_limiter.hpp"
#include "feedforward_stream.hpp"
#include "measured_motion.hpp"
#include "transitions.hpp"
#include "words.hpp"

namespace hodyn_ros::guard
{
// Efforts of a motion, in the sense of those of the feedforward; none where empty. Must not allocate.
using EffortModel = std::function<void(const Motion &, Vector &)>;

// What is commanded for one instant.
struct Command
{
  explicit Command(std::size_t joints) : motion(joints), feedforward(joints), effort(joints) {}
  Motion motion;       // of the reference
  Vector feedforward;  // what of the effort is not feedback
  Vector effort;       // after the limits, with the feedback where the guard has gains
};

class CommandGuard
{
public:
  CommandGuard(
    std::size_t joints, std::size_t position_rows, std::size_t effort_rows, const Config & allowed,
    const Limits & limits, Gains gains = {}, EffortModel model = {})
  : config(allowed),
    measured(joints, config, scaled(limits.velocity, allowed.speed_margin)),
    desired(joints, position_rows, effort_rows, config, scaled(limits.velocity, allowed.speed_margin)),
    issued(joints),
    found(joints),
    velocity_limit_(limits.velocity),
    fastest_(scaled(limits.velocity, allowed.speed_margin)),
    limiter_(limits.effort, known_rates(limits.effort_rate), allowed.effort_step),
    gains_(std::move(gains)),
    model_(std::move(model)),
    offset_(joints),
    relax_(joints),
    braking_(joints),
    scratch_(joints),
    other_(joints),
    reference_then_(joints),
    kept_(joints),
    standing_(joints),
    effort_(joints),
    feedback_(joints)
  {
  }
  CommandGuard(const CommandGuard &) = delete;  // the streams refer to its own config
  CommandGuard & operator=(const CommandGuard &) = delete;

  // Take positions and velocities that were measured at an instant; velocities may hold NaN, or be null.
  Taken measure(Instant now, Instant stamp, const double * position, const double * velocity)
  {
    return measured.take(now, stamp, position, velocity);
  }

  // Take a feedforward about an instant. One that does not continue the one before ends the following.
  Taken follow(Instant now, Instant stamp, const Reference & reference, unsigned status)
  {
    const bool before = desired.known;
    const Taken taken = desired.take(now, stamp, reference, status, following());
    if (taken == Taken::kNumbers || taken == Taken::kJump) {
      if (before) {
        jumped_ = true;
        sound_since_ = kInfinite;
      }
      return taken;
    }
    if (taken == Taken::kYes && !desired.smooth && following()) {
      const bool again = t_ < effort_stepped_at_ + config.fade;
      effort_steps_ = effort_steps_ * again + 1;
      effort_stepped_at_ = t_;
      relax_for_ = config.fade;
    }
    return taken;
  }

  // Stop for good, as the process is shutting down.
  void stop() { shutdown_ = true; }

  // Compute `issued` for an instant; false before anything was joined, after the end, and while it has to be seen
  // where a robot is that nobody has looked after for a while.
  bool command(Instant now)
  {
    const double elapsed = advance(now);
    fresh_ = has_measurement();
    waits_ = waits_for_measurement();
    if (waits_) {
      measured.known = false;  // brakes stop a robot faster than the checks of the next one allow
      return false;
    }
    change_state(find_fault());
    ended = ended || at_the_end();
    if (state == State::kWaiting || ended) {
      return false;
    }
    const double acts = t_ + config.lead;
    motion(acts, scratch_);
    const double left = released(acts);
    feed_back();
    feedforward(acts, effort_);
    for (std::size_t j = 0; j < joints(); ++j) {
      feedback_[j] *= left;
      effort_[j] = left * effort_[j] + feedback_[j];
    }
    if (relax_for_ > 0.0) {
      // whatever has changed, the effort goes on from the last one
      for (std::size_t j = 0; j < joints(); ++j) {
        relax_.value[j] = has_issued_ ? issued.effort[j] - effort_[j] : 0.0;
        relax_.rate[j] = 0.0;
      }
      relax_.start = acts;
      relax_.duration = relax_for_;
      relax_for_ = 0.0;
    }
    if (acts < relax_.start + relax_.duration) {
      relax_.at(acts, other_);
      for (std::size_t j = 0; j < joints(); ++j) {
        effort_[j] += other_.position[j];
      }
    }
    if (tripped_) {
      std::fill(effort_.begin(), effort_.end(), 0.0);
      limiter_.last = effort_;
      limiter_.known = true;
    }
    limiter_(effort_, elapsed);
    saturated_for_ = limiter_.saturated ? saturated_for_ + elapsed : 0.0;
    // one that comes sooner after the last could also do less: it counts by its share, as in the limiter
    limited_commands_ = limiter_.rate_limited ? limited_commands_ + std::min(elapsed / kMillisecond, 1.0) : 0.0;
    issued.motion = scratch_;
    issued.effort = effort_;
    for (std::size_t j = 0; j < joints(); ++j) {
      issued.feedforward[j] = effort_[j] - feedback_[j];
    }
    has_issued_ = true;
    return true;
  }

  const Config config;
  State state = State::kWaiting;
  Found reason;                            // why it has stopped, or cannot join
  Obstacle obstacle = Obstacle::kFault;    // why it has not joined
  std::array<long, 11> faults{};           // how often each has ended the following
  std::array<Transition, 4> transitions{};  // of the last call of `command`, `changes` of them
  std::size_t changes = 0;
  bool ended = false;      // whether nothing more is commanded
  bool listening = true;   // whether anybody takes the commands
  MeasuredMotion measured;
  FeedforwardStream desired;
  Command issued;          // the last command
  Vector found;            // efforts before the first command, for FirstEffort::kFound

private:
  static constexpr double kRelax = 0.1;      // [s] in which feedback lets go
  static constexpr int kLimitedCommands = 5; // in a row, a millisecond or more apart, whose steps may be cut
  static constexpr int kEffortSteps = 3;     // of the feedforward, one soon after the other
  static constexpr double kTripAfter = 0.1;  // [s] of a stop, from which on it must have slowed the robot down

  static Vector scaled(Vector values, double by)
  {
    for (double & value : values) {
      value *= by;
    }
    return values;
  }

  // Where no rate is known, the step that is always allowed is all that is.
  static Vector known_rates(Vector rates)
  {
    for (double & rate : rates) {
      rate = std::isinf(rate) ? std::numeric_limits<double>::min() : rate;
    }
    return rates;
  }

  std::size_t joints() const { return fastest_.size(); }
  bool following() const { return state == State::kJoining || state == State::kFollowing; }

  // time: the guard's own in seconds, that of the clock in nanoseconds

  double advance(Instant now)
  {
    changes = 0;
    const double passed = has_now_ ? 1e-9 * static_cast<double>(now - now_) : 0.0;
    const double longest = 2.0 * config.timeout;
    const double elapsed = std::min(std::max(passed, 0.0), longest);
    now_ = now;
    has_now_ = true;
    t_ += elapsed;
    if (!(0.0 <= passed && passed <= longest)) {
      held_up_ = passed;
      woken_at_ = now;
      if (fresh_ && following()) {
        wait_until_ = t_ + config.timeout;
      }
    } else if (!waits_) {
      held_up_ = 0.0;
    }
    return elapsed;
  }

  // Whether the stop after a hold-up has to wait. Meanwhile the driver may have braked the robot. What was measured
  // before, and lay in a queue, is no place to stop from: efforts of braking would set a robot at rest in motion.
  bool waits_for_measurement() const
  {
    if (held_up_ == 0.0 || t_ > wait_until_ || shutdown_) {
      return false;
    }
    return !fresh_ || measured.age(woken_at_) > 0.0;
  }

  Instant instant(double t) const { return now_ + static_cast<Instant>(std::nearbyint(1e9 * (t - t_))); }
  double measured_at() const { return t_ - std::min(measured.age(now_), config.timeout); }

  bool has_measurement()
  {
    const bool gap = measured.gaps != gaps_ && held_up_ == 0.0;
    gaps_ = measured.gaps;
    if ((gap && following()) || !measured.fresh(now_)) {
      return false;
    }
    if (!following() || !gains_.any() || held_up_ != 0.0) {
      return true;
    }
    motion(measured_at(), scratch_);
    if (measured.unchanged_since != unchanged_since_) {
      unchanged_since_ = measured.unchanged_since;
      reference_then_ = scratch_.position;
      return true;
    }
    for (std::size_t j = 0; j < joints(); ++j) {
      if (std::abs(scratch_.position[j] - reference_then_[j]) > 2.0 * config.resolution) {
        return false;
      }
    }
    return true;
  }

  // the checks

  Found find_fault()
  {
    const bool jumped = jumped_;
    jumped_ = false;
    if (shutdown_) {
      return {Fault::kShutdown, -1, 0.0, 0.0};
    }
    if (held_up_ != 0.0) {
      return {Fault::kHeldUp, -1, held_up_, 2.0 * config.timeout};
    }
    if (config.measured && !fresh_) {
      return {Fault::kNoMeasurement, -1, measured.age(now_), config.measurement_timeout};
    }
    if (gains_.any() && measured.latency > config.latency) {
      return {Fault::kLateMeasurements, -1, measured.latency, config.latency};
    }
    if (jumped) {
      return desired.jump;
    }
    if (!desired.in_time(now_)) {
      return {Fault::kNoFeedforward, -1, config.timeout, config.timeout};
    }
    unsigned beyond = desired.status & config.stop_on;
    if (desired.status & kEffortClamped) {
      beyond &= ~static_cast<unsigned>(kEffortLimitExceeded);  // so it was asked for
    }
    if (beyond != 0) {
      return {Fault::kStatus, -1, static_cast<double>(beyond), 0.0};
    }
    desired.motion(instant(fresh_ ? measured_at() : t_), scratch_);
    Found fast = too_fast(scratch_.velocity);
    if (fast.fault == Fault::kNone && fresh_) {
      fast = too_fast(measured.velocity);
    }
    return fast.fault != Fault::kNone || !following() ? fast : find_fault_of_following();
  }

  Found find_fault_of_following()
  {
    const bool recent = measured.age(now_) <= config.timeout;  // so far back the reference is known
    if (fresh_ && recent && desired.has_motion()) {
      motion(measured_at(), scratch_);
      const int joint = farthest(scratch_.position, measured.position);
      if (distance_ > config.tracking_error) {
        return {Fault::kTracking, joint, distance_, config.tracking_error};
      }
    }
    if (saturated_for_ > config.saturation_time) {
      return {Fault::kSaturation, -1, saturated_for_, config.saturation_time};
    }
    if (state == State::kFollowing && limited_commands_ > kLimitedCommands) {
      return {Fault::kEffortStep, -1, limited_commands_, kLimitedCommands};
    }
    if (effort_steps_ > kEffortSteps) {
      return {Fault::kEffortStep, -1, static_cast<double>(effort_steps_), kEffortSteps};
    }
    return {};
  }

  Found too_fast(const Vector & velocity) const
  {
    for (std::size_t j = 0; j < joints(); ++j) {
      if (std::abs(velocity[j]) > fastest_[j]) {
        return {Fault::kVelocity, static_cast<int>(j), velocity[j], velocity_limit_[j]};
      }
    }
    return {};
  }

  // Which joint is farthest apart; `distance_` by how much.
  int farthest(const Vector & one, const Vector & two)
  {
    int joint = 0;
    distance_ = -1.0;
    for (std::size_t j = 0; j < joints(); ++j) {
      const double off = std::abs(one[j] - two[j]);
      if (off > distance_) {
        distance_ = off;
        joint = static_cast<int>(j);
      }
    }
    return joint;
  }

  // Why the motion cannot be joined now; `reason` has the numbers.
  Obstacle find_obstacle(const Found & fault)
  {
    Found numbers;
    const Obstacle result = [&] {
      if (fault.fault != Fault::kNone) {
        numbers = fault;
        return Obstacle::kFault;
      }
      if (sound_since_ == kInfinite || t_ < sound_since_ + config.settle) {
        return Obstacle::kSettling;
      }
      if (config.join_within == 0.0) {
        return Obstacle::kNone;
      }
      if (!fresh_) {
        return Obstacle::kUnknownPose;
      }
      if (!desired.has_motion()) {
        return Obstacle::kNoPositions;
      }
      desired.motion(instant(measured_at()), scratch_);
      int joint = farthest(scratch_.position, measured.position);
      if (distance_ > config.join_within) {
        numbers = {Fault::kNone, joint, distance_, config.join_within};
        return Obstacle::kPose;
      }
      joint = farthest(scratch_.velocity, measured.velocity);
      if (distance_ > config.join_speed) {
        numbers = {Fault::kNone, joint, distance_, config.join_speed};
        return Obstacle::kSpeed;
      }
      return Obstacle::kNone;
    }();
    if (result != Obstacle::kNone && state != State::kStopping) {
      reason = numbers;
    }
    return result;
  }

  // the state machine

  void change_state(const Found & fault)
  {
    const bool failed = fault.fault != Fault::kNone;
    if (failed || !listening) {
      sound_since_ = kInfinite;
    } else if (sound_since_ == kInfinite) {
      sound_since_ = t_;
    }
    if (!listening) {
      wait();
    } else if (following()) {
      if (failed) {
        begin_to_stop(fault);
      } else if (state == State::kJoining && t_ >= entered_ + config.fade) {
        offsets_ = false;
        enter(State::kFollowing, {});
      }
    } else {
      if (state == State::kStopping && brakes_ && t_ >= braking_.end()) {
        stand();
      }
      if (state != State::kWaiting && !ended) {
        trip_where_it_does_not_stop();
      }
      const Obstacle why = find_obstacle(fault);
      if (state == State::kStopping && fault_ != Fault::kNoFeedforward) {
        return;  // only a stream that has been interrupted is taken up before the robot stands
      }
      if (why == Obstacle::kNone) {
        join();
      } else if (state != State::kStopping) {
        obstacle = why;
      }
    }
  }

  void enter(State next, const Found & why, bool tripped = false)
  {
    if (changes < transitions.size()) {
      transitions[changes++] = {state, next, why, tripped};
    }
    state = next;
    reason = why;
    entered_ = t_;
    saturated_for_ = 0.0;
    limited_commands_ = 0.0;
    effort_steps_ = 0;
  }

  void wait()
  {
    if (state != State::kWaiting) {
      has_issued_ = offsets_ = brakes_ = false;
      enter(State::kWaiting, {});
    }
    obstacle = Obstacle::kNobodyListens;
  }

  void join()
  {
    const double acts = t_ + config.lead;
    desired.motion(instant(acts), other_);
    const bool anew = !has_issued_ || ended;
    const bool commanded = feeding_ || !gains_.any();  // the reference is where the robot was commanded to be
    if (!anew && commanded && t_ < release_from_) {
      motion(acts, scratch_);
    } else if (fresh_) {
      scratch_.position = measured.position;
      scratch_.velocity = measured.velocity;
      scratch_.acceleration = other_.acceleration;
    } else {
      scratch_ = other_;
    }
    if (anew) {
      if (config.first_effort == FirstEffort::kFeedforward) {
        desired.effort(instant(acts), issued.effort);
      } else if (config.first_effort == FirstEffort::kZero) {
        std::fill(issued.effort.begin(), issued.effort.end(), 0.0);
      } else {
        issued.effort = found;
      }
      issued.feedforward = issued.effort;
      issued.motion = scratch_;
      has_issued_ = true;
      limiter_.last = issued.effort;
      limiter_.known = true;
    }
    for (std::size_t j = 0; j < joints(); ++j) {
      offset_.value[j] = scratch_.position[j] - other_.position[j];
      offset_.rate[j] = scratch_.velocity[j] - other_.velocity[j];
    }
    offset_.start = acts;
    offset_.duration = config.fade;
    offsets_ = true;
    brakes_ = false;
    release_from_ = kInfinite;
    fault_ = Fault::kNone;
    tripped_ = ended = false;
    relax_for_ = config.fade;
    enter(State::kJoining, {});
  }

  void begin_to_stop(const Found & fault)
  {
    ++faults[static_cast<std::size_t>(fault.fault)];
    fault_ = fault.fault;
    const double at = t_ + config.lead;
    const bool feedback_here = gains_.any();
    keep_beside_the_model();
    stands_ = false;
    braking_.begin = issued.motion;
    const bool astray = fault_ == Fault::kHeldUp ||
                        (feedback_here && (fault_ == Fault::kTracking || fault_ == Fault::kVelocity));
    if (astray && fresh_) {
      // feedback would pull at a robot that is not where it was commanded to be
      for (std::size_t j = 0; j < joints(); ++j) {
        const double limit = velocity_limit_[j], then = braking_.begin.velocity[j];
        const double least = feedback_here ? -limit : std::min(then, 0.0);  // a drive may be pulling it back
        const double most = feedback_here ? limit : std::max(then, 0.0);
        braking_.begin.velocity[j] = std::min(std::max(measured.velocity[j], least), most);
        braking_.begin.acceleration[j] = 0.0;
        if (feedback_here) {
          braking_.begin.position[j] = measured.position[j];
        }
      }
    }
    braking_.brake(at, config.deceleration, config.shortest_stop);
    brakes_ = true;
    offsets_ = false;
    relax_for_ = kRelax;
    const bool helpless = !model_ && !feedback_here;  // nothing here slows the robot down: no use to wait
    release_from_ = config.end == End::kZero && helpless ? at : kInfinite;
    enter(State::kStopping, fault);
  }

  // Keep the efforts that the model does not explain, such as those of a payload.
  void keep_beside_the_model()
  {
    if (!model_) {
      kept_ = issued.feedforward;
      return;
    }
    if (fault_ == Fault::kNoFeedforward && desired.known) {
      // what was carried on for long is less certain than what it was carried on from
      desired.motion(desired.stamp, other_);
      desired.effort(desired.stamp, kept_);
      model_(other_, effort_);
    } else {
      kept_ = issued.feedforward;
      model_(issued.motion, effort_);
    }
    for (std::size_t j = 0; j < joints(); ++j) {
      kept_[j] -= effort_[j];
    }
  }

  void stand()
  {
    enter(State::kStopped, reason);
    if (config.end == End::kZero) {
      release_from_ = std::min(release_from_, t_ + (alone() ? 0.0 : config.release_after));
    }
  }

  // Let go at once where the robot is too fast although it should have slowed down.
  void trip_where_it_does_not_stop()
  {
    const double slow_by = entered_ + (state == State::kStopping ? kTripAfter : 0.0);
    if (tripped_ || t_ < slow_by || !fresh_) {
      return;
    }
    const Found fast = too_fast(measured.velocity);
    if (fast.fault != Fault::kNone) {
      ++faults[static_cast<std::size_t>(Fault::kVelocity)];
      tripped_ = true;
      enter(State::kStopped, fast, true);
    }
  }

  // Whether nobody looks after a robot that stands.
  bool alone() const { return shutdown_ || tripped_ || (gains_.any() && !feeding_); }

  bool at_the_end() const
  {
    if (state == State::kWaiting) {
      return shutdown_;
    }
    if (state != State::kStopped || !alone()) {
      return false;
    }
    if (tripped_) {
      return has_issued_ &&
             std::all_of(issued.effort.begin(), issued.effort.end(), [](double effort) { return effort == 0.0; });
    }
    if (config.end == End::kZero) {
      return t_ >= release_from_ + config.fade;
    }
    if (gains_.any() || !fresh_) {
      return true;
    }
    // what is held may push a robot on that nothing here slows down; as long as it moves, it is watched
    return std::all_of(measured.velocity.begin(), measured.velocity.end(), [this](double velocity) {
      return std::abs(velocity) <= config.join_speed;
    });
  }

  // the reference and the efforts, at the guard's own time

  void motion(double t, Motion & result)
  {
    if (brakes_) {
      braking_.at(t, result);
      return;
    }
    desired.motion(instant(t), result);
    if (offsets_) {
      offset_.at(t, faded_);
      for (std::size_t j = 0; j < joints(); ++j) {
        result.position[j] += faded_.position[j];
        result.velocity[j] += faded_.velocity[j];
        result.acceleration[j] += faded_.acceleration[j];
      }
    }
  }

  void feedforward(double t, Vector & effort)
  {
    if (!brakes_) {
      desired.effort(instant(t), effort);
      return;
    }
    if (!model_) {
      effort = kept_;
      return;
    }
    if (t < braking_.end() || !stands_) {
      braking_.at(t, other_);
      model_(other_, effort);
      for (std::size_t j = 0; j < joints(); ++j) {
        effort[j] += kept_[j];
      }
      if (!(t < braking_.end())) {
        standing_ = effort;
        stands_ = true;
      }
      return;
    }
    effort = standing_;
  }

  // Compute the efforts of the feedback; none without gains or without a fresh measurement.
  void feed_back()
  {
    const bool fresh = gains_.any() && fresh_ && fault_ != Fault::kLateMeasurements;
    if (feeding_ && !fresh && !(relax_for_ > 0.0)) {
      relax_for_ = kRelax;
    }
    // one that has lost its measurement may find another robot: it comes back by joining alone
    feeding_ = fresh && (feeding_ || following());
    std::fill(feedback_.begin(), feedback_.end(), 0.0);
    if (!gains_.any() || !feeding_) {
      return;
    }
    motion(measured_at(), other_);
    for (std::size_t j = 0; j < joints(); ++j) {
      const double slow = measured.unknown[j] ? 0.0 : other_.velocity[j] - measured.velocity[j];
      feedback_[j] =
        gains_.proportional[j] * (other_.position[j] - measured.position[j]) + gains_.derivative[j] * slow;
    }
  }

  // The share of the efforts that is left.
  double released(double t) const
  {
    if (t <= release_from_) {
      return 1.0;
    }
    const double s = (t - release_from_) / config.fade;
    const double rest = 1.0 - s;
    return s >= 1.0 ? 0.0 : rest * rest * rest * (1.0 + 3.0 * s + 6.0 * (s * s));
  }

  Vector velocity_limit_, fastest_;
  EffortLimiter limiter_;
  Gains gains_;
  EffortModel model_;
  Fading offset_;  // of the reference while joining
  Fading relax_;
  Braking braking_;
  Motion scratch_, other_, faded_{velocity_limit_.size()};
  Vector reference_then_;
  Vector kept_;      // efforts of a stop beside those of the model
  Vector standing_;  // efforts once it stands
  Vector effort_, feedback_;
  bool offsets_ = false, brakes_ = false, stands_ = false, has_issued_ = false, has_now_ = false;
  bool fresh_ = false, jumped_ = false, shutdown_ = false, tripped_ = false, feeding_ = false, waits_ = false;
  double t_ = 0.0;  // [s] own time
  double wait_until_ = -kInfinite;  // [s] own time
  Instant now_ = 0, unchanged_since_ = -1, woken_at_ = 0;
  double held_up_ = 0.0, sound_since_ = kInfinite, relax_for_ = 0.0, entered_ = 0.0, release_from_ = kInfinite;
  double saturated_for_ = 0.0, distance_ = 0.0, effort_stepped_at_ = -kInfinite;
  long gaps_ = 0;
  double limited_commands_ = 0.0;
  int effort_steps_ = 0;
  Fault fault_ = Fault::kNone;
};
}  // namespace hodyn_ros::guard
