#pragma once

#include <string>
#include <unordered_map>
#include <vector>

namespace hardware_interface
{
struct JointInfo
{
  std::string name, role;
  double mechanical_reduction = 1.0, offset = 0.0;
};
using ActuatorInfo = JointInfo;
struct TransmissionInfo
{
  std::string name, type;
  std::vector<JointInfo> joints;
  std::vector<ActuatorInfo> actuators;
  std::unordered_map<std::string, std::string> parameters;
};
}  // namespace hardware_interface
