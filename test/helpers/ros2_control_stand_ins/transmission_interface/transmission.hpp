#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "transmission_interface/handle.hpp"

namespace transmission_interface
{
class Transmission
{
public:
  virtual ~Transmission() = default;
  virtual void configure(const std::vector<JointHandle> & joints, const std::vector<ActuatorHandle> & actuators) = 0;
  virtual void actuator_to_joint() = 0;
  virtual void joint_to_actuator() = 0;
  virtual std::size_t num_actuators() const = 0;
  virtual std::size_t num_joints() const = 0;
};
}  // namespace transmission_interface
