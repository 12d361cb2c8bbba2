/* The guard between feedforwards and motors for firmware in C: command_guard.hpp behind functions.
 *
 * Compile guard.cpp beside it as C++17; it needs no library of C++ (docs/microcontrollers.md). Everything is in SI units,
 * instants are nanoseconds of one clock, arrays hold a number for each joint or rows of them: derivative k of joint j at
 * [k * joints + j]. docs/safety.md says what the guard checks, and what its states are. */
#ifndef HODYN_GUARD_H
#define HODYN_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guard_words.h"

/* Room for joints, and for derivatives of efforts (order + 1, three at least): the same in all files of a program. */
#ifndef HODYN_GUARD_JOINTS
#define HODYN_GUARD_JOINTS 128
#endif
#ifndef HODYN_GUARD_ROWS
#define HODYN_GUARD_ROWS 12
#endif
/* That a guard takes, aligned as by malloc. */
#define HODYN_GUARD_BYTES (2304U + (HODYN_GUARD_JOINTS * (816U + (16U * HODYN_GUARD_ROWS) + (8U * HODYN_GUARD_JOINTS))))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hodyn_guard hodyn_guard;

/* What a guard allows. */
typedef struct {
  double figures[HODYN_FIGURES]; /* at HODYN_FIGURE_... */
  bool measured;                 /* whether it goes on only while measurements come */
  bool efforts_act;              /* whether the efforts are all that the drives do, so that the motion has to agree */
  unsigned stop_on;              /* bits HODYN_STATUS_... of a feedforward that it does not follow */
  int end;                       /* HODYN_END_... */
  int first_effort;              /* HODYN_FIRST_EFFORT_... */
  int rejoin;                    /* HODYN_REJOIN_... */
} hodyn_guard_config;

/* What a guard is made of; memset to zero, then set what there is. */
typedef struct {
  size_t joints;
  hodyn_guard_config config;
  /* limits, by how much efforts and motion may disagree, and ends of the range of joints; null: infinite */
  const double *velocity, *effort, *effort_rate, *mismatch, *lower, *upper;
  const double *proportional, *derivative; /* gains of the feedback; null: none */
  /* Efforts of a motion whose motors are ahead of their links by a deflection, three rows each, in the sense of those of
   * the feedforward; null: none. It always writes them: where it has none, as where loops do not close, those that it
   * wrote last. `context` is handed on. */
  void (*model)(void *context, const double *motion, const double *deflection, double *effort);
  void *model_context;
  /* Of what acts beside the efforts, as hodyn_observer of robot_table.h, true for no HODYN_FAILED; null: none. A sample
   * holds positions and velocities as they are measured, by how much the motors are ahead of their links, the rate of
   * that, and efforts, 5 rows. */
  void (*observer_start)(void *context, const double *sample);
  bool (*observer_step)(void *context, const double *sample, double period, double *efforts, double *deviations);
  void *observer_context;
  /* of springs between motors whose positions are measured and their links, infinite where a drive is rigid; null: all */
  const double *stiffness;
} hodyn_guard_setup;

/* What a guard cannot be made with, and what it may be. */
typedef struct {
  const char *name;
  double least, most, found;
} hodyn_guard_unusable;

/* Why a guard is in its state: which joint (or -1), what was found, and what is allowed. */
typedef struct {
  int cause; /* HODYN_CAUSE_... */
  int joint;
  double value, limit;
  bool tripped; /* the motors let go at once, the one step of the effort that is allowed */
} hodyn_guard_reason;

typedef struct {
  int before, after; /* HODYN_STATE_... */
  hodyn_guard_reason reason;
} hodyn_guard_change;

/* Whether a measurement or a feedforward was taken, or else what is wrong with it. */
enum { HODYN_TAKEN_YES, HODYN_TAKEN_CLOCK, HODYN_TAKEN_NUMBERS, HODYN_TAKEN_JUMP };
enum { HODYN_CHANGES = 8 }; /* of the state in one call, at most */

void hodyn_guard_defaults(hodyn_guard_config *config);

/* Make a guard in `memory` of HODYN_GUARD_BYTES. Null where it cannot be; `wrong`, or null, then says why not. */
hodyn_guard *hodyn_guard_make(
  void *memory, size_t bytes, const hodyn_guard_setup *setup, hodyn_guard_unusable *wrong);

/* Take positions and velocities that were measured at `stamp`; velocities may hold NaN, or be null. */
int hodyn_guard_measure(
  hodyn_guard *guard, int64_t now, int64_t stamp, const double *position, const double *velocity);

/* Take a feedforward about `stamp`, with as many rows of positions and efforts as there are, and its status.
 * `deflections`: by how much the motors are ahead of their links, three rows; null: nothing. */
int hodyn_guard_follow(
  hodyn_guard *guard, int64_t now, int64_t stamp, const double *positions, size_t position_rows, const double *efforts,
  size_t effort_rows, const double *deflections, unsigned status);

/* The commands of one period. False, and nothing is written, where nothing is commanded: before a motion was joined and
 * after the end. `elapsed` [s]: the time since the call before by a clock that cannot be set, or NaN for none. Position
 * and velocity may be null. */
bool hodyn_guard_command(
  hodyn_guard *guard, int64_t now, double elapsed, double *position, double *velocity, double *effort);

/* Stop for good; join a motion again although a fault has stopped the robot, false where it has not. */
void hodyn_guard_stop(hodyn_guard *guard);
bool hodyn_guard_start(hodyn_guard *guard);

/* Say whether anybody takes the commands, as by default, and what efforts drives do before the first command. */
void hodyn_guard_listen(hodyn_guard *guard, bool listening);
void hodyn_guard_found(hodyn_guard *guard, const double *effort);

int hodyn_guard_state(const hodyn_guard *guard);  /* HODYN_STATE_... */
bool hodyn_guard_ended(const hodyn_guard *guard); /* whether nothing more is commanded */
hodyn_guard_reason hodyn_guard_why(const hodyn_guard *guard);
long hodyn_guard_faults(const hodyn_guard *guard, int cause); /* how often a fault has ended the following */

/* Write how the state has changed in the last `hodyn_guard_command`; returns how often. */
size_t hodyn_guard_changes(const hodyn_guard *guard, hodyn_guard_change changes[HODYN_CHANGES]);

const char *hodyn_state_name(int state);
const char *hodyn_cause_name(int cause);

#ifdef __cplusplus
}
#endif

#endif
