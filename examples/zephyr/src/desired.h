/* Desired motions on their way to the loop. C, so that what takes messages may be C as well. */
#ifndef DESIRED_H
#define DESIRED_H

#include <stdbool.h>
#include <stdint.h>

enum { JOINTS = 7, ORDER = 2, ROWS = ORDER + 3 };

/* A desired motion about one instant: what a message holds, byte for byte (little-endian). */
struct desired {
  int64_t stamp;           /* [ns] by the clock of the firmware, which `clock_now` reads and `status` tells */
  double q[ROWS * JOINTS]; /* derivative k of joint j at [k * JOINTS + j] */
};

/* What the firmware tells about itself. */
struct status {
  int64_t now; /* [ns] */
  int32_t state;
  int32_t cause;
};

#ifdef __cplusplus
extern "C" {
#endif

int64_t clock_now(void);

/* Hand a motion to the loop; the newest counts. From any thread. */
void desire(const struct desired *motion);

/* Ask the loop to join a motion again although a fault has stopped the robot, or to stop for good. From any thread. */
void ask_to_start(void);
void ask_to_stop(void);

/* What the loop has come to, now. From any thread. */
struct status status_now(void);

#ifdef __cplusplus
}
#endif

#endif
