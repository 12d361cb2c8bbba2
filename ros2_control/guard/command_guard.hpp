// Between feedforwards and motors: nothing false is commanded, and whatever fails has a defined end.
//
// hodyn_ros/guard/command_guard.py with guard_checks.py, commanded_motion.py and guard_time.py in C++:
// test/guard/test_guard_in_cpp.py holds the two against each other on the same streams. It neither allocates nor
// locks after its construction, and knows nothing of ROS. docs/safety.md describes its states and checks.

#pragma once

#include "effort_check.hpp"
#include "effort_limiter.hpp"
#include "feedforward_stream.hpp"
#include "link_swing.hpp"
#include "measured_motion.hpp"
#include "transitions.hpp"
#include "words.hpp"

namespace hodyn_ros::guard
{
// What is commanded for one instant.
struct Command
{
  explicit Command(size_t joints) : motion(joints), feedforward(joints), effort(joints) {}
  Motion motion;       // of the reference
  Vector feedforward;  // what of the effort is not feedback, before the limits
  Vector effort;       // after the limits, with the feedback where the guard has gains
};

// What a guard cannot be made with, and what it may be; `name` is null where nothing is wrong.
struct Unusable
{
  explicit operator bool() const { return name != nullptr; }
  const char * name;
  double least, most, found;
};

// Find what is out of its range, or has another number of joints.
inline Unusable find_unusable(size_t joints, const Config & config, const Limits & limits, const Gains & gains)
{
  const auto n = static_cast<double>(joints);
  if (joints < 1 || joints > kMostJoints) {
    return {"joints", 1.0, static_cast<double>(kMostJoints), n};
  }
  const Vector * const limited[] = {
    &limits.velocity, &limits.effort, &limits.effort_rate, &limits.mismatch, &limits.lower, &limits.upper};
  for (const Vector * row : limited) {
    if (row->size() != joints) {
      return {"joints with limits", n, n, static_cast<double>(row->size())};
    }
  }
  const Vector * const fed_back[] = {&gains.proportional, &gains.derivative};
  for (const Vector * row : fed_back) {
    if (gains.any() && row->size() != joints) {
      return {"joints with gains", n, n, static_cast<double>(row->size())};
    }
  }
  if (const Figure * const wrong = out_of_range(config)) {
    return {wrong->name, wrong->least, wrong->most, config.*wrong->value};
  }
  return {};
}

// One with something `unusable` commands nothing, ever: look there once it is made.
class CommandGuard
{
public:
  CommandGuard(
    size_t joints, const Config & allowed, const Limits & limits, const Gains & gains = {},
    const EffortModel & model = {}, const Observer & observer = {})
  : config(allowed),
    unusable(find_unusable(joints, allowed, limits, gains)),
    limits_(limits),
    fastest_(scaled(limits.velocity, allowed.speed_margin)),
    gains_(gains),
    model_(model),
    observer_(observer),
    measured(joints, config, fastest_),
    desired(joints, config, fastest_, limits_, model_),
    issued(joints),
    found(joints),
    limiter_(limits_, config.effort_step),
    check_(observer_, fastest_),
    swing_(model_, observer_.stiffness, joints),
    offset_(joints),
    relax_(joints),
    braking_(joints),
    scratch_(joints),
    other_(joints),
    faded_(joints),
    acted_(joints),
    mean_effort_(joints),
    position_then_(joints, kNowhere),
    reference_then_(joints),
    kept_(joints),
    standing_(joints),
    effort_(joints),
    feedback_(joints)
  {
  }
  CommandGuard(const CommandGuard &) = delete;  // its parts refer to its own config, limits and model
  CommandGuard & operator=(const CommandGuard &) = delete;

  // Take positions and velocities that were measured at an instant; velocities may hold NaN, or be null.
  Taken measure(Instant now, Instant stamp, const double * position, const double * velocity)
  {
    const Taken taken = measured.take(now, stamp, position, velocity);
    if (taken == Taken::kYes) {
      jumps_ = 0;
    } else if (taken == Taken::kJump && jumps_++ == 0) {
      measured_jump_ = measured.jump;
    }
    return taken;
  }

  // Take a feedforward about an instant. One that does not continue the one before ends the following.
  Taken follow(Instant now, Instant stamp, const Reference & reference, unsigned status)
  {
    const bool before = desired.known;
    const Taken taken = desired.take(now, stamp, reference, status, following());
    if ((taken == Taken::kNumbers || taken == Taken::kJump) && before) {
      jump_ = desired.fault;
      sound_since_ = kInfinite;
    }
    if (taken == Taken::kYes && !desired.smooth && following()) {
      // a payload or another setting has changed: go there smoothly
      const bool again = t_ < effort_stepped_at_ + config.fade;
      effort_steps_ = effort_steps_ * again + 1;
      effort_stepped_at_ = t_;
      relax_for_ = config.fade;
    }
    return taken;
  }

  // Stop for good; `ends`: nobody looks after the robot once it stands, as the process shuts down.
  void stop(bool ends = true)
  {
    shutdown_ = true;
    ends_ = ends;
  }

  // Join a motion again although a fault has stopped the robot, once all checks pass; whether it has stopped at all.
  bool start()
  {
    asked_ = (state == State::kStopping || state == State::kStopped) && !shutdown_;
    return asked_;
  }

  // Compute `issued` for an instant; false before anything was joined, and after the end. `elapsed` [s]: the time
  // since the call before by a clock that cannot be set, where there is one.
  bool command(Instant now, Optional<double> elapsed = {})
  {
    if (unusable) {
      return false;
    }
    const double since = advance(now, elapsed);
    fresh_ = has_measurement();
    watch_efforts();
    change_state(find_fault());
    ended = ended || at_the_end();
    if (state == State::kWaiting || ended) {
      feeding_ = false;  // what contradicts itself now is no matter of the next motion
      return false;
    }
    const double acts = t_ + config.lead;
    catch_up(acts);
    motion(acts, scratch_);
    const double left = released(acts);
    feed_back();
    feedforward(acts, effort_);
    for (size_t j = 0; j < joints(); ++j) {
      feedback_[j] *= left;
      effort_[j] = left * effort_[j] + feedback_[j];
    }
    relax(acts);
    if (!effort_.all(is_finite)) {
      let_go(Reason{Cause::kMismatch, -1, kInfinite});
    }
    if (tripped_) {
      effort_.fill(0.0);
      limiter_.last = effort_;
      limiter_.known = true;
    }
    for (size_t j = 0; j < joints(); ++j) {
      issued.feedforward[j] = effort_[j] - feedback_[j];
    }
    limiter_(effort_, since);
    saturated_for_ = limiter_.saturated ? saturated_for_ + since : 0.0;
    // one that comes sooner after the last could also do less: it counts by its share, as in the limiter
    const double share = least_of(since / effort_limiter::kMillisecond, 1.0);
    limited_commands_ = limiter_.rate_limited ? limited_commands_ + share : 0.0;
    issued.motion = scratch_;
    issued.effort = effort_;
    has_issued_ = true;
    return true;
  }

  const Config config;
  const Unusable unusable;

private:  // what the streams refer to comes before them
  const Limits limits_;
  Vector fastest_;
  Gains gains_;
  EffortModel model_;
  Observer observer_;

public:
  State state = State::kWaiting;
  Reason reason;                            // why it is in its state, and not in the next one
  long faults[kFaults] = {};       // how often each has ended the following
  Transition transitions[8] = {};  // of the last call of `command`, `changes` of them
  size_t changes = 0;
  bool ended = false;      // whether nothing more is commanded
  bool listening = true;   // whether anybody takes the commands
  MeasuredMotion measured;
  FeedforwardStream desired;
  Command issued;          // the last command
  Vector found;            // efforts before the first command, for FirstEffort::kFound

private:
  static constexpr double kNowhere = static_cast<double>(NAN);

  // A disagreement that has to last, of so many times what is allowed.
  struct Disagreement
  {
    double times;
    double since = kInfinite;  // [s] own time
  };

  static Vector scaled(Vector values, double by)
  {
    for (double & value : values) {
      value *= by;
    }
    return values;
  }

  size_t joints() const { return fastest_.size(); }
  bool following() const { return state == State::kJoining || state == State::kFollowing; }
  Reason of(Cause cause, size_t joint, double value, double limit) const
  {
    return {cause, static_cast<int>(joint), value, limit};
  }

  // time: the guard's own in seconds, that of the clock in nanoseconds

  // Let the guard's own time go on; for how long drives have held the last command [s], but no longer than usual.
  double advance(Instant now, Optional<double> elapsed)
  {
    changes = 0;
    const double passed = has_now_ ? 1e-9 * static_cast<double>(now - now_) : period_;
    double real = elapsed && has_now_ ? *elapsed : passed;
    now_ = now;
    has_now_ = true;
    interrupted_.reset();
    const bool is_known = real >= 0.0;  // else nobody knows how much it was
    astray_ =
      is_known ? exp(-most_of(real, 0.0) / guard_time::kAstrayOver) * astray_ + passed - real : kInfinite;
    if (real > config.drive_timeout) {
      interrupted_ = Reason{Cause::kHeldUp, -1, real, config.drive_timeout};
    } else if (!(fabs(astray_) <= config.clock_tolerance)) {
      interrupted_ = Reason{Cause::kClock, -1, passed, config.clock_tolerance};
      astray_ = 0.0;
    }
    real = is_known ? real : period_;
    // by the slower of two clocks, unless it stands still
    real = least_of(real, passed) > 0.0 ? least_of(real, passed) : most_of(real, passed);
    if (!paced_ && real > 0.0 && !interrupted_ && state == State::kWaiting) {
      period_ = real;  // the first is the best guess
      paced_ = commanded_;
    }
    commanded_ = true;
    late_ = real > guard_time::kLate * period_;
    real = least_of(real, guard_time::kLate * period_);
    const double since = real <= guard_time::kInTime * period_ ? real : period_;
    period_ += (real > period_ ? guard_time::kGrows : guard_time::kEasesOff) * (real - period_);
    t_ += real;
    if (has_issued_) {
      for (size_t j = 0; j < joints(); ++j) {
        acted_[j] += real * issued.effort[j];
      }
      acted_for_ += real;
    }
    return since;
  }

  Instant instant(double t) const { return now_ + static_cast<Instant>(nearbyint(1e9 * (t - t_ - astray_))); }

  // The guard's own time of the last measurement, no further back than a feedforward reaches.
  double measured_at() const
  {
    return t_ - least_of(age(), config.timeout);
  }

  // How old the last measurement is [s]; the clock may stand still.
  double age() const { return most_of(measured.age(now_), t_ - taken_at_); }

  // the measurements

  // Whether the last measurement says where the robot is now.
  bool has_measurement()
  {
    const bool gap = measured.gaps != gaps_ && !interrupted_;
    gaps_ = measured.gaps;
    if (measured.stamp != looked_at_) {
      taken_at_ = t_;
    }
    if (measured.has_seen && measured.seen != seen_) {
      seen_ = measured.seen;
      seen_at_ = t_;
    }
    // as long as they act, signals that agree again are no proof
    const bool act = following() || state == State::kStopping || feeding_;
    if (act && jumps_ >= guard_checks::kJumps && t_ > taken_at_ + guard_checks::kJumpedFor) {
      if (!contradiction_) {
        contradiction_ = measured_jump_;
      }
      return false;
    }
    const bool is_old = t_ > taken_at_ + config.measurement_timeout;
    if (is_old || !measured.fresh(now_) || (gap && following())) {
      return false;
    }
    Found wrong = measured.contradiction();
    if (!wrong) {
      wrong = frozen();
    }
    looked_at_ = measured.stamp;
    if (!contradiction_ || !act) {
      contradiction_ = wrong;
    }
    return !contradiction_;
  }

  // Which joint stays the same, bit for bit, while its reference moves on; or it is blocked.
  Found frozen()
  {
    if (state == State::kWaiting || ended || !(desired.has_motion() || brakes_)) {
      position_then_.fill(kNowhere);
      return {};
    }
    if (measured.stamp == looked_at_) {
      return {};  // nothing new, which is for the age of measurements to tell
    }
    motion(measured_at(), scratch_);
    for (size_t j = 0; j < joints(); ++j) {
      if (measured.position[j] != position_then_[j]) {
        reference_then_[j] = scratch_.position[j];
      }
      position_then_[j] = measured.position[j];
    }
    const auto should = [this](size_t j) { return fabs(scratch_.position[j] - reference_then_[j]); };
    const size_t j = largest(joints(), should);
    if (!(should(j) > 2.0 * config.resolution)) {
      return {};
    }
    return of(Cause::kFrozen, j, should(j), 2.0 * config.resolution);
  }

  bool watches_efforts() const { return observer_ && (gains_.any() || config.efforts_act); }

  // Hold the motion against the efforts that were commanded since the last measurement.
  void watch_efforts()
  {
    if (!watches_efforts()) {
      return;
    }
    if (!has_issued_ || state == State::kWaiting || ended) {
      check_.restart();
      for (Disagreement & one : disagree_) {
        one.since = kInfinite;
      }
    } else if (fresh_ && !(check_.known && measured.stamp == check_.stamp) && acted_for_ > 0.0) {
      for (size_t j = 0; j < joints(); ++j) {
        mean_effort_[j] = acted_[j] / acted_for_;
      }
      if (!brakes_) {
        desired.deflection(instant(measured_at()), other_);
      } else if (fault_ == Cause::kMismatch || !swing_.at(measured.stamp, measured.position, other_)) {
        // links swing on in a stop, but not where the model is in doubt: that would hide a motor's fault longer
        other_ = bent_;
      }
      check_.update(measured.stamp, measured.position, measured.rate, mean_effort_, other_);
      find_allowances();
      for (Disagreement & one : disagree_) {
        bool beyond = false;
        for (size_t j = 0; j < joints(); ++j) {
          beyond = beyond || fabs(check_.value[j]) > allowed(one.times, j);
        }
        one.since = beyond ? least_of(one.since, t_) : kInfinite;
      }
    } else {
      return;
    }
    acted_.fill(0.0);
    acted_for_ = 0.0;
  }

  // What brakes, or another controller, still carry of an effort that fades in; for `allowed`.
  void find_allowances() { relax_.at(t_, faded_); }

  // By how much efforts and motion may disagree.
  double allowed(double times, size_t j) const
  {
    return times * check_.allowed[j] + (borne_ ? fabs(faded_.position[j]) : 0.0);
  }

  // Which joint moves as if much acted on it beside its effort, for a while.
  Found mismatched(const Disagreement & one)
  {
    const double lasts = one.times == 1.0 ? effort_check::kMismatchedFor : effort_check::kAtOnceFor;
    if (!watches_efforts() || !fresh_ || t_ <= one.since + lasts) {
      return {};
    }
    find_allowances();
    const size_t j = largest(
      joints(), [&](size_t i) { return fabs(check_.value[i]) - allowed(one.times, i); });
    return of(Cause::kMismatch, j, check_.value[j], allowed(one.times, j));
  }

  // the checks

  // The first check that fails, and what it has found.
  Found find_fault()
  {
    const Found jump = exchange(jump_, Found());
    if (shutdown_) {
      return Reason{Cause::kShutdown};
    }
    if (interrupted_) {
      return interrupted_;
    }
    if (contradiction_) {
      return contradiction_;
    }
    if (config.measured && !fresh_) {
      return Reason{Cause::kNoMeasurement, -1, 0.0, config.measurement_timeout};
    }
    if (gains_.any() && measured.latency > config.latency) {
      return Reason{Cause::kLateMeasurements, -1, measured.latency, config.latency};
    }
    if (jump) {
      return jump;
    }
    if (!desired.in_time(now_)) {
      return Reason{Cause::kNoFeedforward, -1, 0.0, config.timeout};
    }
    if (const unsigned beyond = beyond_limits()) {
      return Reason{Cause::kStatus, -1, static_cast<double>(beyond)};
    }
    desired.motion(instant(fresh_ ? measured_at() : t_), scratch_);
    for (size_t j = 0; j < joints(); ++j) {
      const double ahead = scratch_.velocity[j] + guard_checks::kAhead * scratch_.acceleration[j];
      scratch_.velocity[j] = most_of(fabs(scratch_.velocity[j]), fabs(ahead));
    }
    Found fast = too_fast(scratch_.velocity);
    if (!fast) {
      fast = robot_too_fast();
    }
    return fast || !following() ? fast : find_fault_of_following();
  }

  Found find_fault_of_following()
  {
    Found mismatch = mismatched(disagree_[0]);
    if (mismatch || (mismatch = mismatched(disagree_[2]))) {
      return mismatch;
    }
    const bool recent = measured.age(now_) <= config.timeout;  // so far back the reference is known
    if (fresh_ && recent && desired.has_motion()) {
      motion(measured_at(), scratch_);
      const auto off = [this](size_t j) { return fabs(scratch_.position[j] - measured.position[j]); };
      if (const size_t j = largest(joints(), off); off(j) > config.tracking_error) {
        return of(Cause::kTracking, j, off(j), config.tracking_error);
      }
    }
    if (const Found leap = find_leap()) {
      return leap;
    }
    if (saturated_for_ > config.saturation_time) {
      return Reason{Cause::kSaturation, -1, saturated_for_, config.saturation_time};
    }
    if (state == State::kFollowing && limited_commands_ > guard_checks::kLimitedCommands) {
      return Reason{Cause::kEffortStep, -1, limited_commands_, guard_checks::kLimitedCommands};
    }
    if (effort_steps_ > guard_checks::kEffortSteps) {
      return Reason{Cause::kEffortStep, -1, static_cast<double>(effort_steps_), guard_checks::kEffortSteps};
    }
    return {};
  }

  // Whether drives with a loop of their own have stayed where they were sent last, as a command is late: they would
  // pull as hard as they can.
  bool may_leap() const { return late_ && !gains_.any() && !config.efforts_act; }

  // How far the reference would leap from the last command.
  Found find_leap()
  {
    if (!may_leap() || !has_issued_) {
      return {};
    }
    motion(t_ + config.lead, scratch_);
    const auto leap = [this](size_t j) { return fabs(scratch_.position[j] - issued.motion.position[j]); };
    const double most = config.join_within != 0.0 ? config.join_within : kInfinite;
    const size_t j = largest(joints(), leap);
    return leap(j) > most ? Found(of(Cause::kReferenceStep, j, leap(j), most)) : Found();
  }

  unsigned beyond_limits() const
  {
    unsigned beyond = desired.status & config.stop_on;
    if (desired.status & kEffortClamped) {
      beyond &= ~static_cast<unsigned>(kEffortLimitExceeded);  // so it was asked for
    }
    return beyond;
  }

  // The velocity in the middle of three: measured, of the positions, of the reference.
  void find_speed(Vector & speed)
  {
    motion(measured_at(), scratch_);
    for (size_t j = 0; j < joints(); ++j) {
      const double one = measured.velocity[j], other = measured.rate[j];
      speed[j] = most_of(least_of(one, other), least_of(most_of(one, other), scratch_.velocity[j]));
    }
  }

  // The measured velocity, near those of positions and reference: one that neither comes near is false, and soon shows
  // to be.
  double believed_velocity(size_t j, double reference) const
  {
    const double swing = measured_motion::kSwing * fastest_[j];
    const double least = least_of(measured.rate[j], reference) - swing;
    const double most = most_of(measured.rate[j], reference) + swing;
    return least_of(most_of(measured.velocity[j], least), most);
  }

  // Whether it is known where the robot is, and no measurement was rejected for a joint since.
  bool whole() const { return fresh_ && measured.whole(); }

  Found robot_too_fast(double share = 1.0)
  {
    if (whole()) {
      motion(measured_at(), scratch_);
      for (size_t j = 0; j < joints(); ++j) {
        scratch_.velocity[j] = believed_velocity(j, scratch_.velocity[j]);
      }
      return too_fast(scratch_.velocity, share);
    }
    if (t_ > seen_at_ + config.measurement_timeout || !measured.seen_lately(now_)) {
      return {};
    }
    return too_fast(measured.speed, share);  // by what each of the joints that are not false says by itself
  }

  Found too_fast(const Vector & velocity, double share = 1.0) const
  {
    for (size_t j = 0; j < joints(); ++j) {
      if (fabs(velocity[j]) > share * fastest_[j]) {
        return of(Cause::kVelocity, j, velocity[j], share * limits_.velocity[j]);
      }
    }
    return {};
  }

  // Why the motion cannot be joined now.
  Found find_obstacle(const Found & fault)
  {
    if (fault) {
      return fault;
    }
    if (sound_since_ == kInfinite || t_ < sound_since_ + config.settle) {
      return Reason{Cause::kSettling, -1, 0.0, config.settle};
    }
    if (const Found elsewhere = find_obstacle_of_pose()) {
      return elsewhere;
    }
    if (fault_ && !(asked_ || rejoins_after(*fault_))) {
      return Reason{Cause::kNotAsked};
    }
    return {};
  }

  Found find_obstacle_of_pose()
  {
    const bool anywhere = config.join_within == 0.0;
    if (!anywhere && !fresh_) {
      return Reason{Cause::kUnknownPose};
    }
    if (!desired.has_motion() && (!anywhere || gains_.any() || !config.efforts_act)) {
      return Reason{Cause::kNoPositions};  // what follows positions would go to zero
    }
    if (anywhere) {
      return {};
    }
    desired.motion(instant(measured_at()), scratch_);
    const auto off = [this](size_t j) { return fabs(scratch_.position[j] - measured.position[j]); };
    if (const size_t j = largest(joints(), off); off(j) > config.join_within) {
      return of(Cause::kPose, j, off(j), config.join_within);
    }
    const auto apart = [this](size_t j) { return fabs(scratch_.velocity[j] - measured.velocity[j]); };
    if (const size_t j = largest(joints(), apart); apart(j) > config.join_speed) {
      return of(Cause::kSpeed, j, apart(j), config.join_speed);
    }
    // where it was before all was sound, as before brakes stopped it, is not where it stands
    const bool before = joined_ && t_ - age() < sound_since_ - effort_limiter::kMillisecond;
    return before ? Found(Reason{Cause::kSettling, -1, 0.0, config.settle}) : Found();
  }

  // Whether it may go on by itself.
  bool rejoins_after(Cause fault) const
  {
    const bool lost = ended || alone();  // since: what has stopped then is not the stream alone
    const bool interrupted = fault == Cause::kNoFeedforward && !lost;
    return config.rejoin == Rejoin::kAlways || (config.rejoin == Rejoin::kGap && interrupted);
  }

  // the state machine

  void change_state(const Found & fault)
  {
    if (fault || !listening) {
      sound_since_ = kInfinite;
    } else if (sound_since_ == kInfinite) {
      sound_since_ = t_;
    }
    if (!listening) {
      wait();
    } else if (following()) {
      if (fault) {
        begin_to_stop(*fault);
      } else if (state == State::kJoining && t_ >= entered_ + config.fade) {
        borne_ = false;  // what is left of an offset, as of a late command, still fades
        enter(State::kFollowing, Reason{Cause::kArrived});
      }
    } else {
      if (state == State::kStopping && brakes_ && t_ >= braking_.end()) {
        enter(State::kStopped, reason);
      }
      if (state == State::kStopped && config.end == End::kZero) {
        release();
      }
      if (ended || state == State::kWaiting) {
        watch_what_is_left();
      } else {
        let_go_where_it_has_to();
      }
      if (tripped_ && !ended) {
        return;  // efforts go to zero first
      }
      const Found obstacle = find_obstacle(fault);
      if (state == State::kStopping && fault_ != Cause::kNoFeedforward) {
        return;  // only a stream that has been interrupted is taken up before the robot stands
      }
      if (!obstacle) {
        join();
      } else if (state != State::kStopping) {
        reason = *obstacle;
      }
    }
  }

  void enter(State next, const Reason & why)
  {
    transitions[changes] = {state, next, why};
    changes = least_of(changes + 1, sizeof(transitions) / sizeof(transitions[0]) - 1);
    state = next;
    reason = why;
    entered_ = t_;
    saturated_for_ = 0.0;
    limited_commands_ = 0.0;
    effort_steps_ = 0;
  }

  void wait()
  {
    const Reason why{Cause::kNotListening};
    if (state != State::kWaiting) {
      has_issued_ = offsets_ = brakes_ = false;
      tripped_ = false;  // nobody is left to take the efforts that were to go to zero
      fault_.reset();
      enter(State::kWaiting, why);
    }
    reason = why;
  }

  void join()
  {
    const double acts = t_ + config.lead;
    desired.motion(instant(acts), other_);
    const bool anew = !has_issued_ || ended;
    const bool commanded = feeding_ || !gains_.any();  // the reference is where the robot was commanded to be
    if (!desired.has_motion()) {  // the way to one that is not known would be none
      scratch_ = other_;
    } else if (!anew && commanded && t_ < release_from_) {
      motion(acts, scratch_);
    } else if (fresh_) {
      scratch_.position = measured.position;
      scratch_.velocity = measured.velocity;
      scratch_.acceleration = other_.acceleration;
    } else {
      scratch_ = other_;
    }
    if (anew) {
      begin_anew(acts);
    }
    for (size_t j = 0; j < joints(); ++j) {
      offset_.value[j] = scratch_.position[j] - other_.position[j];
      offset_.rate[j] = scratch_.velocity[j] - other_.velocity[j];
    }
    offset_.start = acts;
    offset_.duration = config.fade;
    offsets_ = true;
    brakes_ = false;
    release_from_ = kInfinite;
    fault_.reset();
    contradiction_.reset();
    tripped_ = ended = asked_ = false;
    joined_ = true;
    borne_ = anew && config.first_effort != FirstEffort::kFeedforward;
    relax_for_ = config.fade;
    enter(State::kJoining, Reason{Cause::kJoined});
  }

  // Let the first command go on from what the joints carry before it: where that has to be guessed, the efforts of the
  // model, as a feedforward may be false from the start, if the motion is known.
  void begin_anew(double acts)
  {
    const auto stands = [&](double speed) { return fabs(speed) <= config.join_speed; };
    if (scratch_.velocity.all(stands)) {  // and has yet to set off
      scratch_.acceleration.fill(0.0);
    }
    if (config.first_effort == FirstEffort::kFeedforward) {
      desired.effort(instant(acts), issued.effort);
      const bool models = model_ && desired.has_motion();
      if (models) {
        bend_as(acts);
        model_(scratch_, bent_, effort_);
      }
      for (size_t j = 0; j < joints(); ++j) {
        const double known = models ? effort_[j] : issued.effort[j];
        const double off = within(issued.effort[j] - known, commanded_motion::kFirstStep * limiter_.step(j));
        issued.effort[j] = within(known + off, limiter_.limit()[j]);
      }
    } else if (config.first_effort == FirstEffort::kZero) {
      issued.effort.fill(0.0);
    } else {
      issued.effort = found;
    }
    issued.feedforward = issued.effort;
    issued.motion = scratch_;
    has_issued_ = true;
    limiter_.last = issued.effort;
    limiter_.known = true;
  }

  // Let the reference of drives with a loop of their own go on from the last one, where it is late: they have stayed
  // there; a loop that is told of the way meanwhile at once would leap.
  void catch_up(double acts)
  {
    if (!may_leap() || !following() || !has_issued_) {
      return;
    }
    desired.motion(instant(acts), scratch_);
    for (size_t j = 0; j < joints(); ++j) {
      offset_.value[j] = issued.motion.position[j] - scratch_.position[j];
      offset_.rate[j] = issued.motion.velocity[j] - scratch_.velocity[j];
    }
    offset_.start = acts;
    offset_.duration = config.fade;
    offsets_ = true;
  }

  void begin_to_stop(const Reason & why)
  {
    ++faults[static_cast<size_t>(why.cause)];
    fault_ = why.cause;
    borne_ = false;
    if (why.cause == Cause::kHeldUp) {
      end_held_up(why);
      return;
    }
    const double at = t_ + config.lead;
    const bool feedback_here = gains_.any();
    begin_to_swing();
    keep_beside_the_model(at);
    bend_as(at);
    stands_ = false;
    if (whole() && feedback_here && is_one_of(command_guard::kAstray, fault_)) {
      // feedback would pull at a robot that is not where it was commanded to be
      find_speed(braking_.begin.velocity);
      braking_.begin.position = measured.position;
      for (size_t j = 0; j < joints(); ++j) {
        braking_.begin.velocity[j] = within(braking_.begin.velocity[j], limits_.velocity[j]);
        braking_.begin.acceleration[j] = 0.0;
      }
    } else {
      braking_.begin = issued.motion;
      for (size_t j = 0; j < joints(); ++j) {
        braking_.begin.acceleration[j] =
          within(braking_.begin.acceleration[j], commanded_motion::kBrakedFrom * limits_.velocity[j]);
      }
    }
    braking_.brake(at, config.deceleration, limits_, config.shortest_stop);
    brakes_ = true;
    offsets_ = false;
    relax_for_ = command_guard::kRelax;
    const bool helpless = !model_ && !feedback_here;  // nothing here slows the robot down: no use to wait
    release_from_ = config.end == End::kZero && helpless ? at : kInfinite;
    enter(State::kStopping, why);
  }

  // Let links swing on from how they move, as nobody says from now on how far springs bend.
  void begin_to_swing()
  {
    if (!measured.known) {
      return;
    }
    find_speed(other_.velocity);
    other_.position = measured.position;
    other_.acceleration = scratch_.acceleration;  // of the reference
    desired.deflection(instant(measured_at()), bent_);
    swing_.begin(measured.stamp, other_, bent_);
  }

  // Command nothing more: the drives have gone on without, and hold what nobody here knows.
  void end_held_up(const Reason & why)
  {
    enter(State::kStopped, why);
    offsets_ = feeding_ = false;
    ended = true;
  }

  // Let links stand as far behind their motors as the feedforward knows.
  void bend_as(double t)
  {
    desired.deflection(instant(t), bent_);
    bent_.velocity.fill(0.0);
    bent_.acceleration.fill(0.0);
  }

  // Keep the efforts that the model does not explain, such as those of a payload.
  void keep_beside_the_model(double t)
  {
    if (!model_) {
      kept_ = issued.feedforward;
      return;
    }
    if (desired.has_beside && is_one_of(commanded_motion::kFalseEfforts, fault_)) {
      kept_ = desired.beside;
      return;
    }
    if (fault_ == Cause::kNoFeedforward && desired.known) {
      // what was carried on for long is less certain than what it was carried on from
      desired.motion(desired.stamp, other_);
      desired.effort(desired.stamp, kept_);
      desired.deflection(desired.stamp, bent_);
      model_(other_, bent_, effort_);
    } else {
      kept_ = issued.feedforward;
      desired.deflection(instant(t), bent_);
      model_(issued.motion, bent_, effort_);
    }
    for (size_t j = 0; j < joints(); ++j) {
      kept_[j] -= effort_[j];
    }
  }

  // Let efforts go to zero from the next command on, or after a while where somebody looks on.
  void release()
  {
    const double begin = t_ + config.lead + (alone() ? 0.0 : config.release_after);
    release_from_ = least_of(release_from_, begin);
  }

  // Let go at once where no command does any good: command_guard.py says when.
  void let_go_where_it_has_to()
  {
    if (interrupted_ && interrupted_->cause == Cause::kHeldUp) {
      end_held_up(*interrupted_);
    }
    if (tripped_ || ended) {
      return;
    }
    const double slow_by = entered_ + (state == State::kStopping ? command_guard::kTripAfter : 0.0);
    Found wrong = mismatched(disagree_[1]);
    if (!wrong && t_ >= entered_ + command_guard::kTripMismatched) {
      wrong = mismatched(disagree_[0]);
    }
    if (!wrong && fault_ == Cause::kMismatch) {
      wrong = contradiction_;  // nobody can see any more whether motors do what they should
    }
    if (!wrong) {
      const double share = t_ >= slow_by ? 1.0 : command_guard::kRunsAway;
      wrong = robot_too_fast(t_ > release_from_ ? command_guard::kFalls : share);
    }
    if (wrong) {
      let_go(*wrong);
    }
  }

  // Nothing is commanded, yet or any more, but efforts that were left where they are found go on acting: as on the
  // interfaces of ros2_control, whose drivers are told of no end.
  void watch_what_is_left()
  {
    const bool none = found.all([](double effort) { return effort == 0.0; });
    if (config.first_effort != FirstEffort::kFound || none) {
      return;
    }
    if (const Found wrong = robot_too_fast()) {
      let_go(*wrong);
      ended = true;
    }
  }

  void let_go(Reason why)
  {
    ++faults[static_cast<size_t>(why.cause)];
    fault_ = why.cause;
    tripped_ = why.tripped = true;
    asked_ = false;
    enter(State::kStopped, why);
  }

  // Whether nobody looks after a robot that stands.
  bool alone() const { return ends_ || tripped_ || (gains_.any() && !feeding_); }

  bool at_the_end() const
  {
    if (state == State::kWaiting) {
      return shutdown_;
    }
    if (state != State::kStopped || !alone()) {
      return false;
    }
    if (tripped_) {
      return has_issued_ && issued.effort.all([](double effort) { return effort == 0.0; });
    }
    if (gains_.any() && !feeding_) {
      return true;  // nobody would see a robot fall whose efforts fade
    }
    if (config.end == End::kZero) {
      return t_ >= release_from_ + config.fade;
    }
    if (gains_.any() || !fresh_) {
      return true;
    }
    // what is held may push a robot on that nothing here slows down; as long as it moves, it is watched
    return measured.velocity.all([this](double velocity) { return fabs(velocity) <= config.join_speed; });
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
      for (size_t j = 0; j < joints(); ++j) {
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
      model_(other_, bent_, effort);
      for (size_t j = 0; j < joints(); ++j) {
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

  // Let the effort go on from the last one, whatever has changed.
  void relax(double acts)
  {
    if (relax_for_ > 0.0) {
      for (size_t j = 0; j < joints(); ++j) {
        relax_.value[j] = has_issued_ ? issued.effort[j] - effort_[j] : 0.0;
      }
      relax_.start = acts;
      relax_.duration = exchange(relax_for_, 0.0);
    }
    if (acts < relax_.start + relax_.duration) {
      relax_.at(acts, faded_);
      for (size_t j = 0; j < joints(); ++j) {
        effort_[j] += faded_.position[j];
      }
    }
  }

  template <size_t kSize>
  static bool is_one_of(const Cause (&causes)[kSize], const Optional<Cause> & cause)
  {
    for (const Cause one : causes) {
      if (cause == one) {
        return true;
      }
    }
    return false;
  }

  // Compute the efforts of the feedback; none without gains or without a fresh measurement.
  void feed_back()
  {
    const bool fresh = gains_.any() && fresh_ && !is_one_of(command_guard::kBlind, fault_);
    if (feeding_ && !fresh) {
      if (contradiction_ || fault_ == Cause::kMismatch) {
        relax_for_ = command_guard::kDrop;
      } else if (relax_for_ == 0.0) {
        relax_for_ = command_guard::kRelax;
      }
    }
    // one that has lost its measurement may find another robot: it comes back by joining alone
    feeding_ = fresh && (feeding_ || following());
    feedback_.fill(0.0);
    if (!feeding_) {
      return;
    }
    motion(measured_at(), other_);
    for (size_t j = 0; j < joints(); ++j) {
      const double slow = other_.velocity[j] - believed_velocity(j, other_.velocity[j]);
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

  EffortLimiter limiter_;
  EffortCheck check_;
  LinkSwing swing_;
  Fading offset_;  // of the reference while joining
  Fading relax_;
  Braking braking_;
  Motion scratch_, other_, faded_;
  Motion bent_;  // by how much motors are ahead of links, in a stop
  Vector acted_, mean_effort_;             // efforts times seconds since the last sample that was checked, their mean
  Vector position_then_, reference_then_;  // where a joint is that has not moved since, and where it should have been
  Vector kept_;                            // efforts of a stop beside those of the model
  Vector standing_;                        // efforts once it stands
  Vector effort_, feedback_;
  Disagreement disagree_[3] = {{1.0}, {effort_check::kTrip}, {effort_check::kAtOnce}};
  bool offsets_ = false, brakes_ = false, stands_ = false, has_issued_ = false, has_now_ = false;
  bool fresh_ = false, shutdown_ = false, ends_ = false, tripped_ = false, feeding_ = false;
  bool late_ = false;   // whether the last two commands were much further apart than usual
  bool joined_ = false;  // whether a motion ever was
  bool asked_ = false;  // to start, although a fault has stopped it
  bool borne_ = false;  // whether something else carries what efforts do not yet, while they fade in
  Instant now_ = 0;
  Instant looked_at_ = 0;         // stamp of the last measurement that was looked at,
  double taken_at_ = -kInfinite;  // and when that was [s] own time
  Instant seen_ = 0;              // stamp of the last one that says anything of the speed of any joint,
  double seen_at_ = -kInfinite;   // and when that was [s] own time
  int jumps_ = 0;                 // of measured positions since then,
  Reason measured_jump_;                 // and the first of them
  bool commanded_ = false, paced_ = false;  // whether it was asked for commands before, and twice
  double astray_ = 0.0;           // [s] by which the clock has gone otherwise than time, lately
  double t_ = 0.0;                                // [s] own time
  double period_ = effort_limiter::kMillisecond;  // [s] between two commands, as it mostly is
  double acted_for_ = 0.0, sound_since_ = kInfinite, relax_for_ = 0.0, entered_ = 0.0, release_from_ = kInfinite;
  double saturated_for_ = 0.0, limited_commands_ = 0.0, effort_stepped_at_ = -kInfinite;
  int effort_steps_ = 0;
  long gaps_ = 0;
  Found interrupted_;    // how the last two commands were apart
  Found contradiction_;  // of the measurements, since the motion was joined
  Found jump_;           // why the last feedforward does not continue the one before
  Optional<Cause> fault_;
};
}  // namespace hodyn_ros::guard
