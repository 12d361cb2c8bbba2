// What the loop asks of the drives: what is written anew for a robot.

#pragma once

namespace drives
{
// Read positions [rad] and velocities [rad/s] of all motors, reflected to the links; false where none came since the
// last call. NaN is a velocity that is not measured.
bool read(double * position, double * velocity);

// Command efforts [N.m], reflected to the links. Drives carry one out for no longer than `drive_timeout` of robot.hpp,
// and hold the robot then by themselves.
void write(const double * effort);

// Hold the robot without commands: brakes, or drives at zero speed. Before the first command and after the last one.
void hold();

// The same at once, from a fault handler or an interrupt, where nothing else of the firmware may work any more.
void off();
}  // namespace drives
