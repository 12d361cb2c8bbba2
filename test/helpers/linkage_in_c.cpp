// hodyn_ros/LinkageTransmission behind functions of C, for tests by ctypes.

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "plugin/linkage_transmission.hpp"
#include "rclcpp/logging.hpp"

namespace
{
long allocations = 0;
}  // namespace

void * operator new(std::size_t size)
{
  ++allocations;
  if (void * memory = std::malloc(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void * memory) noexcept { std::free(memory); }
void operator delete(void * memory, std::size_t) noexcept { std::free(memory); }

namespace
{
// A transmission with handles of positions, velocities and efforts, three rows on each side; by `swapped` in another
// order than that of the linkage, as ros2_control sorts them.
struct Held
{
  Held(const char * library, const char * hash, bool swapped, const char * left_out)
  {
    const hodyn_ros::Linkage linkage(library);
    n = linkage.size();
    joints.resize(3 * n);
    actuators.resize(3 * n);
    hardware_interface::TransmissionInfo info;
    info.name = "tested";
    info.parameters = {{"library", library}, {"robot_hash", hash}};
    std::vector<transmission_interface::JointHandle> joint_handles;
    std::vector<transmission_interface::ActuatorHandle> actuator_handles;
    const char * interfaces[] = {"position", "velocity", "effort"};
    for (std::size_t at = 0; at < n; ++at) {
      const std::size_t i = swapped ? n - 1 - at : at;
      hardware_interface::JointInfo joint;
      joint.name = linkage.joint_names()[i];
      hardware_interface::ActuatorInfo actuator;
      actuator.name = "motor of " + linkage.actuator_names()[i];
      actuator.role = linkage.actuator_names()[i];
      info.joints.push_back(joint);
      info.actuators.push_back(actuator);
      for (std::size_t row = 0; row < 3; ++row) {
        if (std::string(interfaces[row]) != left_out) {
          joint_handles.emplace_back(joint.name, interfaces[row], &joints[row * n + i]);
          actuator_handles.emplace_back(actuator.name, interfaces[row], &actuators[row * n + i]);
        }
      }
    }
    transmission = std::dynamic_pointer_cast<hodyn_ros::LinkageTransmission>(
      hodyn_ros::LinkageTransmissionLoader().load(info));
    if (transmission != nullptr) {
      transmission->configure(joint_handles, actuator_handles);
    }
  }

  std::size_t n;
  std::vector<double> joints, actuators;
  std::shared_ptr<hodyn_ros::LinkageTransmission> transmission;
};
std::string said;
}  // namespace

extern "C" {

Held * linkage_new(const char * library, const char * hash, int swapped, const char * left_out)
{
  try {
    auto held = std::make_unique<Held>(library, hash, swapped != 0, left_out);
    if (held->transmission != nullptr) {
      return held.release();
    }
    said = stand_in_log();
  } catch (const std::exception & error) {
    said = error.what();
  }
  return nullptr;
}

void linkage_delete(Held * held) { delete held; }
const char * linkage_said() { return said.c_str(); }
double * linkage_joints(Held * held) { return held->joints.data(); }
double * linkage_actuators(Held * held) { return held->actuators.data(); }
const double * linkage_jacobian(Held * held) { return held->transmission->linkage().jacobian(); }
unsigned long linkage_failures(Held * held) { return held->transmission->failures(); }
int linkage_inertia(Held * held, double * matrix)
{
  return held->transmission->linkage().effective_inertia(matrix) ? 1 : 0;
}

// Returns how often memory was taken.
long linkage_map(Held * held, int to_joints, int times)
{
  const long before = allocations;
  for (int i = 0; i < times; ++i) {
    to_joints != 0 ? held->transmission->actuator_to_joint() : held->transmission->joint_to_actuator();
  }
  return allocations - before;
}
}
