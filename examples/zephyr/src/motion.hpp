// A motion there and back, with all derivatives that the feedforward takes.

#pragma once

#include "desired.h"

constexpr double kStart[JOINTS] = {-0.7, -0.6, -0.6, -2.4, -0.7, 1.0, -0.6};  // [rad]
constexpr double kWay[JOINTS] = {0.3, 0.2, -0.25, 0.3, 0.2, -0.3, 0.4};       // [rad]
constexpr double kLasts = 1.5;                                                // [s] one way

// The motion at t [s], for a robot that stands at `kStart`.
inline void motion_at(double t, double * q)
{
  // s(x) = 126 x^5 - 420 x^6 + 540 x^7 - 315 x^8 + 70 x^9 goes from 0 to 1 with four derivatives of zero at both ends
  double course[10] = {0.0, 0.0, 0.0, 0.0, 0.0, 126.0, -420.0, 540.0, -315.0, 70.0};
  const long ways = static_cast<long>(t / kLasts);
  const double x = t < 0.0 ? 0.0 : t / kLasts - static_cast<double>(ways);
  const bool back = ways % 2 != 0;
  double per = back ? -1.0 : 1.0;
  for (int k = 0; k < ROWS; ++k) {
    double s = 0.0;
    for (int i = 9; i >= 0; --i) {
      s = s * x + course[i];
    }
    for (int j = 0; j < JOINTS; ++j) {
      q[k * JOINTS + j] = (k == 0 ? kStart[j] + (back ? kWay[j] : 0.0) : 0.0) + kWay[j] * per * s;
    }
    for (int i = 0; i < 9; ++i) {  // the derivative of the polynomial
      course[i] = (i + 1) * course[i + 1];
    }
    course[9] = 0.0;
    per /= kLasts;
  }
}
