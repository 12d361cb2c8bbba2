// What the loop has to know of the robot that its exported sources do not say. Figures of the Panda.

#pragma once

#include "core/guarded_feedforward.hpp"

constexpr long kPeriod = 1'000'000;        // [ns] of the loop
constexpr unsigned long kMemory = 1280;    // bytes that the exported robot keeps, at least; checked at the start
constexpr double kDriveTimeout = 0.05;     // [s] that drives carry out a command; without another one they go off
constexpr double kProportional[] = {600.0, 600.0, 600.0, 600.0, 250.0, 150.0, 50.0};  // [N.m/rad]
constexpr double kDerivative[] = {50.0, 50.0, 50.0, 20.0, 20.0, 20.0, 10.0};          // [N.m s/rad]

inline hodyn_ros::CommandConfig command_config()
{
  hodyn_ros::CommandConfig config;
  config.gains = {{kProportional, kProportional + 7}, {kDerivative, kDerivative + 7}};
  config.guard.measured = true;
  config.guard.efforts_act = true;
  config.guard.drive_timeout = kDriveTimeout;
  config.guard.tracking_error = 0.2;
  return config;
}
