// What the guards in Python and in C++ share: tools/guard_table.py writes it from hodyn_ros/guard.
//
// Read m and N for rad and N.m where a joint is prismatic.

#pragma once

#include <math.h>

namespace hodyn_ros::guard
{
constexpr double kInfinite = static_cast<double>(INFINITY);

// Where a guard is.
enum class State : int {
  kWaiting,
  kJoining,
  kFollowing,
  kStopping,
  kStopped,
};

// Why a guard is in its state.
enum class Cause : int {
  // Which check has failed
  kShutdown,
  kHeldUp,
  kClock,
  kFrozen,
  kContradiction,
  kNoMeasurement,
  kLateMeasurements,
  kMismatch,
  kNoFeedforward,
  kReferenceStep,
  kStatus,
  kVelocity,
  kTracking,
  kSaturation,
  kEffortStep,
  // Why a motion cannot be joined although no check fails
  kNothingCame,
  kNotAsked,
  kNotListening,
  kSettling,
  kUnknownPose,
  kNoPositions,
  kPose,
  kSpeed,
  // Why a guard went on
  kJoined,
  kArrived,
};
constexpr int kFaults = 15;  // the first of the causes

// What is commanded once the robot stands.
enum class End : int {
  kHold,  // the efforts, and the feedback where there is one, go on
  kZero,  // efforts go to zero
};

// What the joints carry before the first command.
enum class FirstEffort : int {
  kFeedforward,  // what the feedforward says: brakes or another controller hold the robot
  kZero,  // nothing: the drives carry the weight, or are switched on later
  kFound,  // what `CommandGuard::found` has been set to
};

// When a robot that has stopped may join a motion by itself.
enum class Rejoin : int {
  kNever,  // each time it has to be asked
  kGap,  // after an end or a gap of the stream of feedforwards alone
  kAlways,
};

// Bits of the status of a feedforward, as in FeedforwardTorque.msg.
enum Status : unsigned {
  kEffortLimitExceeded = 1,
  kEffortRateLimitExceeded = 2,
  kVelocityLimitExceeded = 4,
  kPositionLimitExceeded = 8,
  kEffortClamped = 16,
  kNearSingularity = 32,
  kThrustLimitExceeded = 64,
  kThrustRateLimitExceeded = 128,
  kBaseWrenchUnreached = 256,
};

struct StatusName
{
  Status bit;
  const char * name;
};
constexpr StatusName kStatusNames[] = {
  {kEffortLimitExceeded, "EFFORT_LIMIT_EXCEEDED"},
  {kEffortRateLimitExceeded, "EFFORT_RATE_LIMIT_EXCEEDED"},
  {kVelocityLimitExceeded, "VELOCITY_LIMIT_EXCEEDED"},
  {kPositionLimitExceeded, "POSITION_LIMIT_EXCEEDED"},
  {kEffortClamped, "EFFORT_CLAMPED"},
  {kNearSingularity, "NEAR_SINGULARITY"},
  {kThrustLimitExceeded, "THRUST_LIMIT_EXCEEDED"},
  {kThrustRateLimitExceeded, "THRUST_RATE_LIMIT_EXCEEDED"},
  {kBaseWrenchUnreached, "BASE_WRENCH_UNREACHED"},
};

inline const char * name_of(State value)
{
  static const char * const names[] = {
    "waiting",
    "joining",
    "following",
    "stopping",
    "stopped",
  };
  return names[static_cast<int>(value)];
}

inline const char * name_of(Cause value)
{
  static const char * const names[] = {
    "shutdown",
    "held up",
    "the clock has jumped",
    "measurement frozen",
    "position and velocity disagree",
    "no measurement",
    "measurements too late",
    "efforts and motion disagree",
    "no feedforward",
    "reference discontinuity",
    "feedforward beyond limits",
    "velocity violation",
    "tracking error",
    "effort saturated",
    "effort discontinuity",
    "nothing has come yet",
    "it has to be asked to start",
    "nobody takes the commands",
    "all has been sound for a moment only",
    "start pose invalid: where the robot stands is not known",
    "start pose invalid: the feedforward holds no motor positions",
    "start pose invalid",
    "start pose invalid: the motion is under way",
    "feedforward and robot fit together",
    "the robot is on the motion",
  };
  return names[static_cast<int>(value)];
}

// What follows the name of a cause, if anything, with places for the fields of a reason.
inline const char * sentence_of(Cause value)
{
  static const char * const sentences[] = {
    "it was asked to stop for good",
    "{value:.3g} s passed between two commands, and drives do not hold one for longer than {limit:g} s, "
    "so nothing more is commanded",
    "it went on by {value:.3g} s between two commands",
    "the position of joint {joint!r} stays the same, bit for bit, while it should move by {value:.3g} rad"
    " or m; look after its encoder, or free the joint",
    "the positions of joint {joint!r} have moved by {value:.3g} rad or m more than its velocities say; "
    "look after sign, scale and order of its encoder",
    "no sound one for {limit:g} s, or one after a gap",
    "they are {value:.3g} s old on average; feedback swings with more than {limit:g} s; bring them "
    "sooner, or lower the gains and raise 'latency'",
    "joint {joint!r} moves as if {value:.3g} N.m or N acted besides, {limit:.3g} are allowed; look for a "
    "contact, a payload, a weak or turned motor, or raise uncertainty in its file",
    "none for {limit:g} s",
    "",
    "the feedforward has the status",
    "joint {joint!r} has {value:.3g} rad/s or m/s; the limit is {limit:g}",
    "joint {joint!r} is {value:.3g} rad or m off its reference, {limit:g} are allowed",
    "efforts at their limit for {limit:g} s",
    "",
    "",
    "call the service ~/start, or set 'rejoin' to always",
    "",
    "",
    "publish joint states with stamps",
    "let dynamics_node have the drives of the robot, or set join_within to 0 where efforts act alone",
    "joint {joint!r} stands {value:.3g} rad or m from the motion, more than join_within ({limit:g}); "
    "begin where the robot stands",
    "joint {joint!r} is {value:.3g} rad/s or m/s slower or faster than the motion, more than join_speed "
    "({limit:g}); begin at rest",
    "",
    "",
  };
  return sentences[static_cast<int>(value)];
}

// What a guard allows.
struct Config
{
  // How long [s] a feedforward is extrapolated by its derivatives, and how early one may come; without a newer one the
  // robot stops.
  double timeout = 0.05;
  bool measured = false;
  // How old [s] a measurement may be, with feedback and at the start.
  double measurement_timeout = 0.05;
  // [s] that a measurement may be stamped ahead
  double clock_tolerance = 0.005;
  // [s] age of measurements on average up to which feedback is stable
  double latency = 0.005;
  // Time [s] from the computation of a command to the middle of its effect: the delay to the drive and half of its
  // period.
  double lead = 0.0;
  // A motion is joined if it is within this [rad or m] of the robot in every joint; 0: not checked, so that a robot
  // that stands elsewhere jumps.
  double join_within = 0.05;
  // A motion is joined if its velocity is within this [rad/s or m/s] of that of the robot.
  double join_speed = 0.1;
  // How long [s] all checks must pass before a motion is joined.
  double settle = 0.1;
  // How long [s] joining a motion takes, and the fade of efforts to zero.
  double fade = 0.5;
  // The robot stops if a joint is faster than this times its limit.
  double speed_margin = 1.1;
  // The robot stops if a joint is farther than this [rad or m] from its reference.
  double tracking_error = 0.1;
  // [rad] by which measured positions may jump
  double resolution = 0.005;
  // [rad] by which two feedforwards may disagree, and ten times it in [rad/s]
  double reference_step = 0.005;
  // How long [s] drives carry out a command when no other follows, and then brake, or let go; after a hold-up of that
  // length nothing is commanded.
  double drive_timeout = 0.1;
  // Largest change of a command in a millisecond [N.m or N], unless the rate of the effort in the robot file allows
  // more; where it has none, 2 % of the largest effort are allowed as well.
  double effort_step = 2.0;
  // How long [s] efforts may be at their limits before the robot stops.
  double saturation_time = 0.1;
  unsigned stop_on = kEffortLimitExceeded | kVelocityLimitExceeded | kPositionLimitExceeded | kNearSingularity;
  // Largest deceleration [rad/s^2 or m/s^2] of the reference in a stop; 0: 7.5, or for fast joints what stops them from
  // their highest speed within 0.65 s, and up to three times that before a joint leaves its range.
  double deceleration = 0.0;
  // [s]
  double shortest_stop = 0.1;
  End end = End::kHold;
  // How long [s] after standstill efforts fade to zero, with end: zero.
  double release_after = 1.0;
  FirstEffort first_effort = FirstEffort::kFeedforward;
  Rejoin rejoin = Rejoin::kGap;
  bool efforts_act = false;
};

// A figure of it, and its range; without bounds where it has none.
struct Figure
{
  const char * name;
  double Config::* value;
  double least, most;
};
constexpr Figure kFigures[] = {
  {"timeout", &Config::timeout, 0.001, 1.0},
  {"measurement_timeout", &Config::measurement_timeout, 0.001, 10.0},
  {"clock_tolerance", &Config::clock_tolerance, -kInfinite, kInfinite},
  {"latency", &Config::latency, -kInfinite, kInfinite},
  {"lead", &Config::lead, 0.0, 0.1},
  {"join_within", &Config::join_within, 0.0, 1.0},
  {"join_speed", &Config::join_speed, 0.0, 100.0},
  {"settle", &Config::settle, 0.0, 10.0},
  {"fade", &Config::fade, 0.001, 10.0},
  {"speed_margin", &Config::speed_margin, 0.1, 10.0},
  {"tracking_error", &Config::tracking_error, 0.0001, 1000.0},
  {"resolution", &Config::resolution, -kInfinite, kInfinite},
  {"reference_step", &Config::reference_step, -kInfinite, kInfinite},
  {"drive_timeout", &Config::drive_timeout, 0.01, 10.0},
  {"effort_step", &Config::effort_step, 0.0, 1000000.0},
  {"saturation_time", &Config::saturation_time, 0.0, 1000.0},
  {"deceleration", &Config::deceleration, 0.0, 10000.0},
  {"shortest_stop", &Config::shortest_stop, 0.001, kInfinite},
  {"release_after", &Config::release_after, 0.0, 10000.0},
};

// Return the first figure that is not within its range, null where all are.
inline const Figure * out_of_range(const Config & config)
{
  for (const Figure & figure : kFigures) {
    const double value = config.*figure.value;
    const bool bounded = figure.least != -kInfinite;
    if (bounded && !(figure.least <= value && value <= figure.most && value < kInfinite)) {
      return &figure;
    }
  }
  return nullptr;
}

namespace command_guard
{
// [s] in which feedback lets go where it loses its measurement or its reference
constexpr double kRelax = 0.1;
// [s] in which it lets go where what it has fed back was false
constexpr double kDrop = 0.02;
// [s] of a stop, from which on it must have slowed the robot down
constexpr double kTripAfter = 0.1;
// [s] of a stop, from which on efforts have to do what they should
constexpr double kTripMismatched = 0.015;
// times the speed that stops a robot: the stop makes it faster still
constexpr double kRunsAway = 1.05;
// share of the highest speed of a robot that its fading efforts hold no more
constexpr double kFalls = 0.1;
constexpr Cause kAstray[] = {
  Cause::kTracking, Cause::kVelocity, Cause::kMismatch,
};
constexpr Cause kBlind[] = {
  Cause::kFrozen, Cause::kContradiction, Cause::kNoMeasurement, Cause::kLateMeasurements, Cause::kMismatch,
};
}  // namespace command_guard

namespace commanded_motion
{
// share of a step of efforts that the first ones may be off the model, which is off itself
constexpr double kFirstStep = 0.5;
// [1/s] times the highest speed: no stop begins from a larger acceleration
constexpr double kBrakedFrom = 7.0;
constexpr Cause kFalseEfforts[] = {
  Cause::kEffortStep, Cause::kMismatch, Cause::kTracking, Cause::kVelocity,
};
}  // namespace commanded_motion

namespace effort_check
{
// [1/s] L: what acts from one moment on shows by two thirds after 1 / L
constexpr double kGain = 60.0;
// deviations of what acts besides that are no fault
constexpr double kThreshold = 5.0;
// [s] that differences of positions are smoothed over, so efforts are as well
constexpr double kRateOver = 0.01;
// times the mismatch that stops a robot: no effort that is commanded does what it should
constexpr double kTrip = 1.75;
// times as much as stops a robot, which gets it out of hand sooner
constexpr double kAtOnce = 4.0;
// [s] that efforts and motion have to disagree: signals that contradict show first
constexpr double kMismatchedFor = 0.004;
// [s] that more than this has to last
constexpr double kAtOnceFor = 0.002;
// [s] between two samples that are held together
constexpr double kLongest = 0.5;
// [1/s] times the highest speed: no difference of two samples counts for more
constexpr double kQuickest = 40.0;
}  // namespace effort_check

namespace effort_limiter
{
// [s]
constexpr double kMillisecond = 0.001;
// [s] in which an effort may come to its limit where nothing says how fast it may change
constexpr double kFullWithin = 0.05;
}  // namespace effort_limiter

namespace feedforward_stream
{
// [1/s] by which what holds for steps of positions holds for those of velocities
constexpr double kVelocity = 10.0;
// [s] over which no derivative may change what it is one of by more than the joint can do
constexpr double kHorizon = 0.05;
// what the joint can do, as limits are stated with care
constexpr double kTwice = 2.0;
// [s] that a derivative and what it is one of are compared over
constexpr double kComparedOver = 0.1;
// times the step that two feedforwards may disagree by: so far may they go apart meanwhile
constexpr double kApart = 2.0;
// [s] that changes of what the model does not explain are looked at over
constexpr double kUnexplainedOver = 0.5;
}  // namespace feedforward_stream

namespace guard_checks
{
// in a row, a millisecond or more apart, whose steps may be cut
constexpr double kLimitedCommands = 5.0;
// of the feedforward, one soon after the other
constexpr double kEffortSteps = 3.0;
// [s] from now, when a motion has to keep its speed limit as well
constexpr double kAhead = 0.02;
// of measured positions, one after the other, that are no chance
constexpr double kJumps = 2.0;
// [s] without a measurement that could be taken, where all that come are jumps
constexpr double kJumpedFor = 0.03;
}  // namespace guard_checks

namespace guard_time
{
// [s] that the clock is compared with time over
constexpr double kAstrayOver = 1.0;
// times the usual time between commands, which efforts go on by where they come later
constexpr double kInTime = 1.5;
// times the usual time between commands: nothing goes on by more at once
constexpr double kLate = 4.0;
// share by which the mean time between commands becomes longer with one that is late
constexpr double kGrows = 0.1;
// share by which the mean time between commands becomes shorter with each
constexpr double kEasesOff = 0.02;
}  // namespace guard_time

namespace link_swing
{
// of the largest inertia: what is less is none
constexpr double kLeast = 1e-09;
// times the inertia over the square of a step: what is stiffer moves with its motor
constexpr double kStiffest = 10000.0;
// [s] in which links cease to swing besides, as nobody knows their phase for long
constexpr double kDiesOut = 0.2;
}  // namespace link_swing

namespace measured_motion
{
constexpr double kTurn = 6.283185307179586;
// [rad or m, and per s], which no joint has
constexpr double kHuge = 1000000.0;
// [s] within half of which no joint gets from rest to its highest speed
constexpr double kSpeedUp = 0.2;
// [s] that the mean age of measurements looks back
constexpr double kMeanOver = 0.1;
// [s] that positions and velocities are compared over
constexpr double kComparedOver = 0.1;
// [s] that the velocities of a joint are added up over while its position stays the same
constexpr double kStandingOver = 1.0;
// share of its speed by which the velocity of a joint may be wrong
constexpr double kSlack = 0.05;
// times its highest speed: no single velocity counts for more
constexpr double kFastest = 2.0;
// [s] that the speed of a joint by its positions alone is smoothed over
constexpr double kSeenOver = 0.003;
// share of its highest speed by which the velocity of a joint may differ from the others
constexpr double kSwing = 0.1;
}  // namespace measured_motion

namespace reasons
{
constexpr Cause kStartPose[] = {
  Cause::kUnknownPose, Cause::kNoPositions, Cause::kPose, Cause::kSpeed,
};
}  // namespace reasons

namespace transitions
{
// [s]
constexpr double kRelief = 0.1;
// [rad/s^2 or m/s^2] by which joints brake where nothing else is stated,
constexpr double kGentle = 7.5;
// [s] and what stops them from their highest speed within this, where that is more
constexpr double kStandsWithin = 0.65;
// times as hard it brakes at most before the end of a range
constexpr double kHarder = 3.0;
}  // namespace transitions
}  // namespace hodyn_ros::guard
