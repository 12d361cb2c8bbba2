// hodyn_ros/LinkageTransmission: a linkage as a transmission of ros2_control. docs/linkages.md

#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/linkage.hpp"
#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "transmission_interface/transmission.hpp"
#include "transmission_interface/exception.hpp"
#include "transmission_interface/transmission_loader.hpp"

namespace hodyn_ros
{
class LinkageTransmission : public transmission_interface::Transmission
{
public:
  // `joints`, `actuators`: the names of the handles, in the order of the linkage's.
  LinkageTransmission(
    std::unique_ptr<Linkage> linkage, std::vector<std::string> joints, std::vector<std::string> actuators);

  // Takes positions of both sides, and velocities and efforts where both sides have them. Throws
  // transmission_interface::Exception naming what is missing.
  void configure(
    const std::vector<transmission_interface::JointHandle> & joint_handles,
    const std::vector<transmission_interface::ActuatorHandle> & actuator_handles) override;

  // Positions first, and with J there velocities and efforts. Where the linkage cannot be there, positions stay, the
  // rest goes on with the last J, and `failures` counts one more.
  void actuator_to_joint() override;
  void joint_to_actuator() override;

  std::size_t num_actuators() const override { return linkage_->size(); }
  std::size_t num_joints() const override { return linkage_->size(); }

  const Linkage & linkage() const { return *linkage_; }
  unsigned long failures() const { return failures_; }

private:
  enum Kind { kPosition, kVelocity, kEffort, kKinds };
  using Joints = std::array<std::vector<transmission_interface::JointHandle>, kKinds>;
  using Actuators = std::array<std::vector<transmission_interface::ActuatorHandle>, kKinds>;

  template <typename Handles>
  const double * read(const Handles & handles);
  template <typename Handles>
  void write(Handles & handles);

  std::unique_ptr<Linkage> linkage_;
  std::vector<std::string> joint_names_, actuator_names_;
  Joints joints_;
  Actuators actuators_;
  std::vector<double> values_, results_;
  unsigned long failures_ = 0;
};

// Parameters of the transmission: `library`, what `hodyn export --lang linkage --shared` has written, and `robot_hash`
// (or a beginning of it), which may be left out. Roles of joints and actuators are the names that they have in the
// robot's file; without roles their own names are.
class LinkageTransmissionLoader : public transmission_interface::TransmissionLoader
{
public:
  std::shared_ptr<transmission_interface::Transmission> load(
    const hardware_interface::TransmissionInfo & transmission_info) override;
};
}  // namespace hodyn_ros
