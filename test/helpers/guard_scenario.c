/* Firmware in C around guard.h, also read as C++: two joints that move as they should, and no motion from 1 s on. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "guard.h"

enum { N = 2 };
static const double weight[N] = {9.0, 4.0}; /* [N.m], constant */

static void model(void *context, const double *motion, const double *deflection, double *effort)
{
  (void)context, (void)deflection;
  for (int j = 0; j < N; ++j) {
    effort[j] = weight[j] + 2.0 * motion[2 * N + j];
  }
}

/* What cannot be made, and why. */
static void refuse(hodyn_guard_setup setup)
{
  static double memory[HODYN_GUARD_BYTES / sizeof(double) + 1];
  hodyn_guard_unusable wrong;
  setup.joints = 3;
  if (hodyn_guard_make(memory, sizeof(memory), &setup, &wrong) == NULL) {
    printf("%s: %g to %g, found %g; ", wrong.name, wrong.least, wrong.most, wrong.found);
  }
  setup.joints = N;
  if (hodyn_guard_make(memory, sizeof(double), &setup, &wrong) == NULL) {
    printf("%s: found %g; ", wrong.name, wrong.found);
  }
  if (hodyn_guard_make((char *)memory + 1, HODYN_GUARD_BYTES, &setup, &wrong) == NULL) {
    printf("%s: found %g; ", wrong.name, wrong.found);
  }
  setup.config.figures[HODYN_FIGURE_FADE] = 0.0;
  if (hodyn_guard_make(memory, sizeof(memory), &setup, &wrong) == NULL) {
    printf("%s: %g to %g, found %g\n", wrong.name, wrong.least, wrong.most, wrong.found);
  }
}

int main(void)
{
  static double memory[HODYN_GUARD_BYTES / sizeof(double) + 1];
  const double fastest[N] = {2.0, 2.0};
  hodyn_guard_setup setup;
  memset(&setup, 0, sizeof(setup));
  setup.joints = N;
  hodyn_guard_defaults(&setup.config);
  setup.config.measured = true;
  setup.config.figures[HODYN_FIGURE_FADE] = 0.1;
  setup.config.figures[HODYN_FIGURE_SETTLE] = 0.01;
  setup.config.figures[HODYN_FIGURE_TRACKING_ERROR] = 1.0;
  setup.velocity = fastest;
  setup.model = model;
  refuse(setup);
  hodyn_guard *const guard = hodyn_guard_make(memory, sizeof(memory), &setup, NULL);
  if (guard == NULL) {
    return 1;
  }
  double position[N] = {0.0}, velocity[N] = {0.0}, effort[N] = {0.0}, step = 0.0;
  bool commanded = false;
  for (int k = 1; k <= 2500; ++k) {
    const int64_t now = 1000000 * (int64_t)k;
    const double t = 1e-3 * k, s = sin(4.0 * t), c = cos(4.0 * t);
    hodyn_guard_measure(guard, now, now, position, velocity);
    if (k <= 1000) { /* positions, velocities, accelerations; efforts with two derivatives */
      double q[3 * N], tau[3 * N];
      for (int j = 0; j < N; ++j) {
        const double a = 0.02;
        q[j] = a * s, q[N + j] = 4.0 * a * c, q[2 * N + j] = -16.0 * a * s;
        tau[j] = weight[j] - 32.0 * a * s, tau[N + j] = -128.0 * a * c, tau[2 * N + j] = 512.0 * a * s;
      }
      hodyn_guard_follow(guard, now, now, q, 3, tau, 3, NULL, 0U);
    }
    double before = effort[0];
    if (hodyn_guard_command(guard, now, 1e-3, position, velocity, effort)) {
      step = fmax(step, commanded ? fabs(effort[0] - before) : 0.0);
      commanded = true;
    }
    hodyn_guard_change changes[HODYN_CHANGES];
    const size_t count = hodyn_guard_changes(guard, changes);
    for (size_t i = 0; i < count; ++i) {
      const hodyn_guard_reason why = changes[i].reason;
      printf("%s -> %s: ", hodyn_state_name(changes[i].before), hodyn_state_name(changes[i].after));
      printf("%s, %g\n", hodyn_cause_name(why.cause), why.limit);
    }
  }
  printf("%.17g %.17g %ld\n", step, effort[0], hodyn_guard_faults(guard, HODYN_CAUSE_NO_FEEDFORWARD));
  return 0;
}
