/* What a shared object of `hodyn export --shared` offers: one table, which hodyn_robot_table() returns.
 *
 * Arrays of derivatives are row by row: derivative k of joint j at [k * joints + j], SI units. `joint` are the
 * driven joints, `motor` the motors, one for each of them, reflected to the link side. */
#ifndef HODYN_ROBOT_TABLE_H
#define HODYN_ROBOT_TABLE_H

#define HODYN_ROBOT_ABI 6

enum { HODYN_OK = 0, HODYN_NEAR_SINGULAR = 1, HODYN_FAILED = 2 };

/* What acts on joints beside known efforts: the momentum observer of hodyn_ros.observers. Null where there is none.
 * A sample holds positions and velocities of all joints, and of the motors, and efforts, 5 rows. */
typedef struct {
  /* Begin at a sample before which there is none. */
  void (*start)(void *memory, const double *sample);
  /* Take the one a period [s] later, for external efforts and their deviations. Returns a code; HODYN_FAILED leaves
   * everything as it was. */
  int (*step)(void *memory, const double *sample, double period, double *efforts, double *deviations);
  const double *stiffness; /* of springs between motors and links, infinite for rigid drives; null: efforts of joints */
} hodyn_observer;

typedef struct {
  unsigned abi;  /* HODYN_ROBOT_ABI of whoever wrote it */
  unsigned size; /* of this struct, in bytes */
  const char *robot;
  const char *hash; /* SHA-256 of the robot's file, 64 hexadecimal digits */
  unsigned order;   /* highest derivative of the efforts; motions have two more */
  unsigned coordinates; /* of q */
  unsigned joints;      /* that are driven */
  unsigned motor_rows;  /* of motor_motion, 1 to 3 */
  unsigned has_motors;  /* drives are described; else motors are joints */
  const char *const *coordinate_names;
  const char *const *joint_names;
  /* limits, `joints` numbers each, infinite where there are none */
  const double *lower, *upper, *velocity, *effort, *effort_rate;
  const double *motor_velocity, *motor_effort, *motor_effort_rate;
  /* by how much efforts may change without a motion that explains it, from the uncertainty of the robot's file */
  const double *mismatch, *motor_mismatch;
  unsigned long memory; /* bytes that a caller keeps, aligned as by malloc */
  void (*home)(void *memory);
  /* From q, (order + 3) rows: joint_motion, 3 rows; efforts of joints and of motors, (order + 1) rows each, the
   * motors' continued by those of the joints where springs take two derivatives; motor_motion. Returns a code;
   * HODYN_FAILED leaves everything as it was. */
  int (*feedforward)(
    void *memory, const double *q, double *joint_motion, double *joint_effort, double *motor_motion,
    double *motor_effort);
  /* Efforts of joints that move by q and of motors that move by theta, one row each of motions of 3 rows; where
   * transmissions are stiff, both are one. Null where joints are not the coordinates. */
  int (*motion_effort)(
    void *memory, const double *q, const double *theta, double *joint_effort, double *motor_effort);
  /* Whether efforts of joints, or of motors, and the motion agree: deviations count as a fifth of what the uncertainty of
   * the robot's file allows. */
  hodyn_observer joint_observer, motor_observer;
  double (*self_test)(void); /* largest relative error of calls with known results */
} hodyn_robot;

#ifdef __cplusplus
extern "C"
#endif
const hodyn_robot *hodyn_robot_table(void);

#endif
