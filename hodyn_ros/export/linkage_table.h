/* What a shared object of `hodyn export --lang linkage --shared` offers: one table, which hodyn_linkage_table()
 * returns. Joints are the coordinates of the linkage, actuators its driven joints, as many. SI units. */
#ifndef HODYN_LINKAGE_TABLE_H
#define HODYN_LINKAGE_TABLE_H

#define HODYN_LINKAGE_ABI 1

enum { HODYN_LINKAGE_OK = 0, HODYN_LINKAGE_NEAR_SINGULAR = 1, HODYN_LINKAGE_FAILED = 2 };

typedef struct {
  unsigned abi;  /* HODYN_LINKAGE_ABI of whoever wrote it */
  unsigned size; /* of this struct, in bytes */
  const char *robot;
  const char *hash; /* SHA-256 of the robot's file, 64 hexadecimal digits */
  unsigned joints;  /* as many as actuators */
  const char *const *joint_names;
  const char *const *actuator_names;
  const double *home_joints, *home_actuators; /* positions where a memory begins */
  const double *inertia; /* of the actuators [kg m^2 or kg]; null where the robot's file describes no drives */
  unsigned long memory;  /* bytes that a caller keeps, aligned as by malloc */
  void (*home)(void *memory);
  /* Positions from positions, and what velocities of actuators are by those of joints, (actuators, joints) by rows.
   * Where they fail (HODYN_LINKAGE_FAILED), they leave everything as it was: the linkage cannot be there, or is
   * more than half a radian from where it was at the last success. */
  int (*to_actuators)(void *memory, const double *joints, double *actuators, double *jacobian);
  int (*to_joints)(void *memory, const double *actuators, double *joints, double *jacobian);
  double (*self_test)(void); /* largest relative error of calls with known results */
} hodyn_linkage;

#ifdef __cplusplus
extern "C"
#endif
const hodyn_linkage *hodyn_linkage_table(void);

#endif
