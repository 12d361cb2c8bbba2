/* States, causes and figures of the guard for guard.h: tools/guard_table.py --c writes it.
 *
 * Read m and N for rad and N.m where a joint is prismatic. */
#ifndef HODYN_GUARD_WORDS_H
#define HODYN_GUARD_WORDS_H

/* Where a guard is. */
enum {
  HODYN_STATE_WAITING,
  HODYN_STATE_JOINING,
  HODYN_STATE_FOLLOWING,
  HODYN_STATE_STOPPING,
  HODYN_STATE_STOPPED,
};

/* What is commanded once the robot stands. */
enum {
  /* the efforts, and the feedback where there is one, go on */
  HODYN_END_HOLD,
  /* efforts go to zero */
  HODYN_END_ZERO,
};

/* What the joints carry before the first command. */
enum {
  /* what the feedforward says: brakes or another controller hold the robot */
  HODYN_FIRST_EFFORT_FEEDFORWARD,
  /* nothing: the drives carry the weight, or are switched on later */
  HODYN_FIRST_EFFORT_ZERO,
  /* what hodyn_guard_found has said */
  HODYN_FIRST_EFFORT_FOUND,
};

/* When a robot that has stopped may join a motion by itself. */
enum {
  /* each time it has to be asked */
  HODYN_REJOIN_NEVER,
  /* after an end or a gap of the stream of feedforwards alone */
  HODYN_REJOIN_GAP,
  HODYN_REJOIN_ALWAYS,
};

/* Why a guard is in its state. The first HODYN_FAULTS are faults. */
enum {
  HODYN_CAUSE_SHUTDOWN,
  HODYN_CAUSE_HELD_UP,
  HODYN_CAUSE_CLOCK,
  HODYN_CAUSE_FROZEN,
  HODYN_CAUSE_CONTRADICTION,
  HODYN_CAUSE_NO_MEASUREMENT,
  HODYN_CAUSE_LATE_MEASUREMENTS,
  HODYN_CAUSE_MISMATCH,
  HODYN_CAUSE_NO_FEEDFORWARD,
  HODYN_CAUSE_REFERENCE_STEP,
  HODYN_CAUSE_STATUS,
  HODYN_CAUSE_VELOCITY,
  HODYN_CAUSE_TRACKING,
  HODYN_CAUSE_SATURATION,
  HODYN_CAUSE_EFFORT_STEP,
  HODYN_CAUSE_NOTHING_CAME,
  HODYN_CAUSE_NOT_ASKED,
  HODYN_CAUSE_NOT_LISTENING,
  HODYN_CAUSE_SETTLING,
  HODYN_CAUSE_UNKNOWN_POSE,
  HODYN_CAUSE_NO_POSITIONS,
  HODYN_CAUSE_POSE,
  HODYN_CAUSE_SPEED,
  HODYN_CAUSE_JOINED,
  HODYN_CAUSE_ARRIVED,
};

#define HODYN_FAULTS 15

/* Bits of the status of a feedforward. */
enum {
  HODYN_STATUS_EFFORT_LIMIT_EXCEEDED = 1,
  HODYN_STATUS_EFFORT_RATE_LIMIT_EXCEEDED = 2,
  HODYN_STATUS_VELOCITY_LIMIT_EXCEEDED = 4,
  HODYN_STATUS_POSITION_LIMIT_EXCEEDED = 8,
  HODYN_STATUS_EFFORT_CLAMPED = 16,
  HODYN_STATUS_NEAR_SINGULARITY = 32,
  HODYN_STATUS_THRUST_LIMIT_EXCEEDED = 64,
  HODYN_STATUS_THRUST_RATE_LIMIT_EXCEEDED = 128,
  HODYN_STATUS_BASE_WRENCH_UNREACHED = 256,
};

/* Places of the figures of a configuration. */
enum {
  /* How long [s] a feedforward is extrapolated by its derivatives, and how early one may come; without a newer one
   * the robot stops. */
  HODYN_FIGURE_TIMEOUT,
  /* How old [s] a measurement may be, with feedback and at the start. */
  HODYN_FIGURE_MEASUREMENT_TIMEOUT,
  /* [s] that a measurement may be stamped ahead */
  HODYN_FIGURE_CLOCK_TOLERANCE,
  /* [s] age of measurements on average up to which feedback is stable */
  HODYN_FIGURE_LATENCY,
  /* Time [s] from the computation of a command to the middle of its effect: the delay to the drive and half of its
   * period. */
  HODYN_FIGURE_LEAD,
  /* A motion is joined if it is within this [rad or m] of the robot in every joint; 0: not checked, so that a robot
   * that stands elsewhere jumps. */
  HODYN_FIGURE_JOIN_WITHIN,
  /* A motion is joined if its velocity is within this [rad/s or m/s] of that of the robot. */
  HODYN_FIGURE_JOIN_SPEED,
  /* How long [s] all checks must pass before a motion is joined. */
  HODYN_FIGURE_SETTLE,
  /* How long [s] joining a motion takes, and the fade of efforts to zero. */
  HODYN_FIGURE_FADE,
  /* The robot stops if a joint is faster than this times its limit. */
  HODYN_FIGURE_SPEED_MARGIN,
  /* The robot stops if a joint is farther than this [rad or m] from its reference. */
  HODYN_FIGURE_TRACKING_ERROR,
  /* [rad] by which measured positions may jump */
  HODYN_FIGURE_RESOLUTION,
  /* [rad] by which two feedforwards may disagree, and ten times it in [rad/s] */
  HODYN_FIGURE_REFERENCE_STEP,
  /* How long [s] drives carry out a command when no other follows, and then brake, or let go; after a hold-up of
   * that length nothing is commanded. */
  HODYN_FIGURE_DRIVE_TIMEOUT,
  /* Largest change of a command in a millisecond [N.m or N], unless the rate of the effort in the robot file allows
   * more; where it has none, 2 % of the largest effort are allowed as well. */
  HODYN_FIGURE_EFFORT_STEP,
  /* How long [s] efforts may be at their limits before the robot stops. */
  HODYN_FIGURE_SATURATION_TIME,
  /* Largest deceleration [rad/s^2 or m/s^2] of the reference in a stop; 0: 7.5, or for fast joints what stops them
   * from their highest speed within 0.65 s, and up to three times that before a joint leaves its range. */
  HODYN_FIGURE_DECELERATION,
  /* [s] */
  HODYN_FIGURE_SHORTEST_STOP,
  /* How long [s] after standstill efforts fade to zero, with end: zero. */
  HODYN_FIGURE_RELEASE_AFTER,
  HODYN_FIGURES
};

#endif
