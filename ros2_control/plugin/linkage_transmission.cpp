#include "linkage_transmission.hpp"

#include <algorithm>
#include <utility>

#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/logging.hpp"

namespace hodyn_ros
{
namespace
{
using transmission_interface::Exception;

constexpr const char * kInterfaces[] = {
  hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY, hardware_interface::HW_IF_EFFORT};

// The handles of one interface in the order of `names`; none where one is missing.
template <typename Handle>
std::vector<Handle> in_order(
  const std::vector<Handle> & handles, const std::vector<std::string> & names, const std::string & interface)
{
  std::vector<Handle> found;
  for (const auto & name : names) {
    const auto handle = std::find_if(handles.begin(), handles.end(), [&](const Handle & one) {
      return one.get_prefix_name() == name && one.get_interface_name() == interface && static_cast<bool>(one);
    });
    if (handle == handles.end()) {
      return {};
    }
    found.push_back(*handle);
  }
  return found;
}

// The names that joints or actuators have in the URDF, in the order of those of the linkage.
template <typename Info>
std::vector<std::string> named_as(const std::vector<std::string> & names, const std::vector<Info> & infos)
{
  std::vector<std::string> found;
  for (const auto & name : names) {
    const auto info = std::find_if(infos.begin(), infos.end(), [&](const Info & one) {
      return (one.role.empty() ? one.name : one.role) == name;
    });
    if (info == infos.end()) {
      throw Exception("nothing has the name or the role '" + name + "', which the linkage has");
    }
    if (info->mechanical_reduction != 1.0 || info->offset != 0.0) {
      throw Exception(
        "'" + info->name + "' has a mechanical_reduction or an offset; put reductions and offsets into the robot's "
        "file, or into a SimpleTransmission behind this one");
    }
    found.push_back(info->name);
  }
  if (infos.size() != names.size()) {
    throw Exception("the linkage has other joints or actuators than the transmission");
  }
  return found;
}
}  // namespace

LinkageTransmission::LinkageTransmission(
  std::unique_ptr<Linkage> linkage, std::vector<std::string> joints, std::vector<std::string> actuators)
: linkage_(std::move(linkage)),
  joint_names_(std::move(joints)),
  actuator_names_(std::move(actuators)),
  values_(linkage_->size()),
  results_(linkage_->size())
{
}

void LinkageTransmission::configure(
  const std::vector<transmission_interface::JointHandle> & joint_handles,
  const std::vector<transmission_interface::ActuatorHandle> & actuator_handles)
{
  Joints joints;
  Actuators actuators;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    joints[kind] = in_order(joint_handles, joint_names_, kInterfaces[kind]);
    actuators[kind] = in_order(actuator_handles, actuator_names_, kInterfaces[kind]);
    if (joints[kind].empty() || actuators[kind].empty()) {
      joints[kind].clear();
      actuators[kind].clear();
    }
  }
  if (joints[kPosition].empty()) {
    std::string names;
    for (const auto & side : {joint_names_, actuator_names_}) {
      for (const auto & name : side) {
        names += " " + name;
      }
    }
    throw Exception("a linkage is different at every pose: it needs handles of the positions of all of" + names);
  }
  joints_ = std::move(joints);
  actuators_ = std::move(actuators);
}

template <typename Handles>
const double * LinkageTransmission::read(const Handles & handles)
{
  for (std::size_t i = 0; i < handles.size(); ++i) {
    values_[i] = handles[i].get_value();
  }
  return values_.data();
}

template <typename Handles>
void LinkageTransmission::write(Handles & handles)
{
  for (std::size_t i = 0; i < handles.size(); ++i) {
    handles[i].set_value(results_[i]);
  }
}

void LinkageTransmission::actuator_to_joint()
{
  if (linkage_->to_joints(read(actuators_[kPosition]), results_.data())) {
    write(joints_[kPosition]);
  } else {
    ++failures_;
  }
  linkage_->joint_velocities(read(actuators_[kVelocity]), results_.data());
  write(joints_[kVelocity]);
  linkage_->joint_efforts(read(actuators_[kEffort]), results_.data());
  write(joints_[kEffort]);
}

void LinkageTransmission::joint_to_actuator()
{
  if (linkage_->to_actuators(read(joints_[kPosition]), results_.data())) {
    write(actuators_[kPosition]);
  } else {
    ++failures_;
  }
  linkage_->actuator_velocities(read(joints_[kVelocity]), results_.data());
  write(actuators_[kVelocity]);
  linkage_->actuator_efforts(read(joints_[kEffort]), results_.data());
  write(actuators_[kEffort]);
}

std::shared_ptr<transmission_interface::Transmission> LinkageTransmissionLoader::load(
  const hardware_interface::TransmissionInfo & transmission_info)
{
  try {
    const auto parameter = [&](const char * name) {
      const auto found = transmission_info.parameters.find(name);
      return found == transmission_info.parameters.end() ? std::string() : found->second;
    };
    if (parameter("library").empty()) {
      throw Exception("the parameter 'library' is missing: what 'hodyn export --lang linkage --shared' has written");
    }
    auto linkage = std::make_unique<Linkage>(parameter("library"), parameter("robot_hash"));
    auto joints = named_as(linkage->joint_names(), transmission_info.joints);
    auto actuators = named_as(linkage->actuator_names(), transmission_info.actuators);
    return std::make_shared<LinkageTransmission>(std::move(linkage), std::move(joints), std::move(actuators));
  } catch (const std::exception & error) {
    RCLCPP_ERROR(
      rclcpp::get_logger("linkage_transmission"), "transmission '%s': %s", transmission_info.name.c_str(),
      error.what());
    return nullptr;
  }
}
}  // namespace hodyn_ros

PLUGINLIB_EXPORT_CLASS(hodyn_ros::LinkageTransmissionLoader, transmission_interface::TransmissionLoader)
