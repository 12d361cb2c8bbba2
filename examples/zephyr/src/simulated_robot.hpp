// A robot for trying the loop without one: stiff, driven by its efforts, by the model that its exported sources hold.

#pragma once

#include <math.h>
#include <stddef.h>

#include "desired.h"
#include "robot.hpp"
#include "robot_table.h"

class SimulatedRobot
{
public:
  explicit SimulatedRobot(const double * start)
  {
    for (size_t j = 0; j < JOINTS; ++j) {
      motion[0][j] = start[j];
    }
  }

  // Go on by `time` [s] under efforts of the motors.
  void move(const double * effort, double time)
  {
    constexpr size_t n = JOINTS;
    double rest[n], mass[n][n], acceleration[n];
    efforts(rest, n);
    for (size_t j = 0; j < n; ++j) {
      efforts(mass[j], j);
      for (size_t i = 0; i < n; ++i) {
        mass[j][i] -= rest[i];
      }
      acceleration[j] = effort[j] - rest[j];
    }
    solve(mass, acceleration);
    for (size_t j = 0; j < n; ++j) {
      motion[1][j] += time * acceleration[j];
      motion[0][j] += time * motion[1][j];
    }
  }

  void stand()
  {
    for (double & speed : motion[1]) {
      speed = 0.0;
    }
  }

  double motion[3][JOINTS] = {};  // position, velocity; the last row is for `efforts`

private:
  // Efforts of the motion with an acceleration of one of joint `along` (n: of none).
  void efforts(double * motor, size_t along)
  {
    double joint[JOINTS];
    for (size_t j = 0; j < JOINTS; ++j) {
      motion[2][j] = j == along ? 1.0 : 0.0;
    }
    hodyn_robot_table()->motion_effort(memory_, motion[0], motion[0], joint, motor);
  }

  // Gauss's elimination; a mass matrix needs no pivots.
  static void solve(double (&a)[JOINTS][JOINTS], double * x)
  {
    constexpr size_t n = JOINTS;
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = k + 1; i < n; ++i) {
        const double by = a[i][k] / a[k][k];
        for (size_t j = k; j < n; ++j) {
          a[i][j] -= by * a[k][j];
        }
        x[i] -= by * x[k];
      }
    }
    for (size_t k = n; k-- > 0;) {
      for (size_t j = k + 1; j < n; ++j) {
        x[k] -= a[k][j] * x[j];
      }
      x[k] /= a[k][k];
    }
  }

  alignas(8) unsigned char memory_[kMemory] = {};
};
