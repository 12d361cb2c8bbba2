// A ros2_control controller with feedforward in its own loop: it takes desired motions with their
// derivatives from a topic, carries the last one on to the present by its derivatives, computes what the
// motors have to do with the exported panda.c, and adds a proportional-derivative term. Whenever it begins
// (after its activation, with a motion, when motions stop), its commands fade over from what they were.
// docs/export.md explains how to build and use it.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "controller_interface/controller_interface.hpp"
#include "hodyn_ros/msg/desired_motion.hpp"
#include "panda.h"
#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/rclcpp.hpp"

namespace hodyn_feedforward
{
static_assert(PANDA_ORDER == 2 && PANDA_HAS_MOTORS, "export the robot with its drives and --order 2");

constexpr std::size_t kJoints = PANDA_JOINTS;
constexpr std::size_t kRows = PANDA_ORDER + 3;  // position to snap

using Motion = std::array<double, kRows * kJoints>;  // derivative k of joint j at [k * kJoints + j]
using CallbackReturn = controller_interface::CallbackReturn;

struct Desired
{
  bool valid = false;
  std::int64_t stamp = 0;  // [ns]
  Motion q{};
};

class FeedforwardController : public controller_interface::ControllerInterface
{
public:
  CallbackReturn on_init() override
  {
    auto_declare<std::vector<double>>("stiffness", std::vector<double>(kJoints, 0.0));  // [N.m/rad]
    auto_declare<std::vector<double>>("damping", std::vector<double>(kJoints, 0.0));    // [N.m s/rad]
    auto_declare<bool>("motor_side", true);  // whether the states are those of the motors, or of the links
    auto_declare<double>("timeout", 0.05);   // [s] for which a motion is carried on
    auto_declare<double>("fade", 0.2);       // [s] in which commands fade over, and a motion without messages brakes
    auto_declare<double>("join_within", 0.05);  // [rad] of the states, in every joint, a motion is taken up
    return CallbackReturn::SUCCESS;
  }

  controller_interface::InterfaceConfiguration command_interface_configuration() const override
  {
    return interfaces({"effort"});
  }

  controller_interface::InterfaceConfiguration state_interface_configuration() const override
  {
    return interfaces({"position", "velocity"});
  }

  CallbackReturn on_configure(const rclcpp_lifecycle::State &) override
  {
    const auto node = get_node();
    const double error = panda_self_test();
    if (!(error < 1e-9)) {
      RCLCPP_ERROR(node->get_logger(), "the exported code is off by %g; export and compile it again", error);
      return CallbackReturn::ERROR;
    }
    stiffness_ = node->get_parameter("stiffness").as_double_array();
    damping_ = node->get_parameter("damping").as_double_array();
    motor_side_ = node->get_parameter("motor_side").as_bool();
    timeout_ = node->get_parameter("timeout").as_double();
    fade_ = node->get_parameter("fade").as_double();
    join_within_ = node->get_parameter("join_within").as_double();
    if (!(fade_ > 0.0)) {
      RCLCPP_ERROR(node->get_logger(), "fade must be above 0 s, found %g", fade_);
      return CallbackReturn::ERROR;
    }
    if (stiffness_.size() != kJoints || damping_.size() != kJoints) {
      RCLCPP_ERROR(node->get_logger(), "stiffness and damping must have %zu numbers each", kJoints);
      return CallbackReturn::ERROR;
    }
    subscription_ = node->create_subscription<hodyn_ros::msg::DesiredMotion>(
      "desired_motion", rclcpp::SensorDataQoS().keep_last(1),
      [this](const hodyn_ros::msg::DesiredMotion::ConstSharedPtr message) { take(*message); });
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_activate(const rclcpp_lifecycle::State &) override
  {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      latest_.valid = false;  // what was desired before does not count
    }
    desired_.valid = false;
    if (!read_states()) {
      RCLCPP_ERROR(get_node()->get_logger(), "no finite position and velocity of every joint");
      return CallbackReturn::ERROR;
    }
    for (std::size_t j = 0; j < kJoints; ++j) {
      // what the drives do now: zero, or what another controller has left
      const auto effort = command_interfaces_[j].get_optional();
      command_[j] = effort && std::isfinite(*effort) ? *effort : 0.0;
    }
    rest_ = Motion{};
    std::copy(position_.begin(), position_.end(), rest_.begin());
    if (motor_side_) {
      // The links are where the springs put the motors to where they are. Each round leaves the hundredth of the
      // error that the weight changes by, relative to the stiffness.
      for (int round = 0; round < 5; ++round) {
        compute(rest_);
        for (std::size_t j = 0; j < kJoints; ++j) {
          rest_[j] -= motor_[j] - position_[j];
        }
      }
    }
    begin(false);
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override
  {
    bool written = true;
    for (auto & effort : command_interfaces_) {
      written = effort.set_value(0.0) && written;  // nobody looks after it any more
    }
    return written ? CallbackReturn::SUCCESS : CallbackReturn::ERROR;
  }

  // The loop: no allocation, no waiting. The clock of `time` may be another than that of the stamps.
  controller_interface::return_type update(const rclcpp::Time &, const rclcpp::Duration & period) override
  {
    if (const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock); lock.owns_lock()) {
      desired_ = latest_;
    }
    if (!read_states()) {
      return controller_interface::return_type::ERROR;
    }
    since_ += period.seconds();
    const double age = 1e-9 * static_cast<double>(get_node()->now().nanoseconds() - desired_.stamp);
    const bool fresh = desired_.valid && std::abs(age) <= timeout_;
    if (fresh) {
      Motion q{};
      carry_on(desired_.q, age, q);
      compute(q);
      if (!following_ && near()) {
        begin(true);
      }
      if (following_) {
        rest_ = q;
      }
    } else if (following_) {
      begin(false);
    }
    if (!following_) {
      compute(braked(rest_, since_));
    }

    const double s = std::min(since_ / fade_, 1.0);
    const double weight = s * s * (3.0 - 2.0 * s);
    bool written = true;
    for (std::size_t j = 0; j < kJoints; ++j) {
      const double wanted = effort_[j] + stiffness_[j] * (reference()[j] - position_[j]) +
                            damping_[j] * (reference()[kJoints + j] - velocity_[j]);
      command_[j] = before_[j] + weight * (wanted - before_[j]);
      if (!std::isfinite(command_[j])) {
        return controller_interface::return_type::ERROR;
      }
      written = command_interfaces_[j].set_value(command_[j]) && written;
    }
    return written ? controller_interface::return_type::OK : controller_interface::return_type::ERROR;
  }

private:
  // Joint by joint, in the order of the exported code.
  static controller_interface::InterfaceConfiguration interfaces(const std::vector<std::string> & kinds)
  {
    controller_interface::InterfaceConfiguration result;
    result.type = controller_interface::interface_configuration_type::INDIVIDUAL;
    for (const char * joint : panda_joint_names) {
      for (const auto & kind : kinds) {
        result.names.push_back(std::string(joint) + "/" + kind);
      }
    }
    return result;
  }

  // Read where the joints are and how fast they move.
  bool read_states()
  {
    bool finite = true;
    for (std::size_t j = 0; j < kJoints; ++j) {
      const auto position = state_interfaces_[2 * j].get_optional();
      const auto velocity = state_interfaces_[2 * j + 1].get_optional();
      finite = finite && position && velocity && std::isfinite(*position) && std::isfinite(*velocity);
      position_[j] = position.value_or(0.0);
      velocity_[j] = velocity.value_or(0.0);
    }
    return finite;
  }

  // Compute what the motors have to do for a motion.
  void compute(const Motion & q)
  {
    std::array<double, (PANDA_ORDER + 1) * kJoints> torque;
    panda_inverse_dynamics(q.data(), torque.data());
    panda_motor_feedforward(q.data(), torque.data(), motor_.data(), effort_.data());
    std::copy(q.begin(), q.begin() + 2 * kJoints, link_.begin());
  }

  // Positions and velocities to be fed back on, on the side of the states.
  const double * reference() const { return motor_side_ ? motor_.data() : link_.data(); }

  // Whether what was computed is where the robot is: elsewhere it would jump.
  bool near() const
  {
    for (std::size_t j = 0; j < kJoints; ++j) {
      if (!(std::abs(reference()[j] - position_[j]) <= join_within_)) {
        return false;
      }
    }
    return true;
  }

  // From now on follow motions, or rest; commands fade over.
  void begin(bool follow)
  {
    following_ = follow;
    since_ = 0.0;
    before_ = command_;
  }

  // A motion that brakes, with an acceleration that goes to zero, and rests `fade` later.
  Motion braked(const Motion & from, double since) const
  {
    const double left = 1.0 - std::min(since / fade_, 1.0);
    Motion q{};
    for (std::size_t j = 0; j < kJoints; ++j) {
      const double velocity = from[kJoints + j];
      q[j] = from[j] + velocity * fade_ / 3.0 * (1.0 - left * left * left);
      q[kJoints + j] = velocity * left * left;
      q[2 * kJoints + j] = -2.0 * velocity * left / fade_;
    }
    return q;
  }

  // Taylor: row k of the result is the sum over i of q^(k + i) h^i / i!.
  static void carry_on(const Motion & q, double h, Motion & result)
  {
    for (std::size_t k = 0; k < kRows; ++k) {
      double factor = 1.0;
      for (std::size_t i = 0; k + i < kRows; ++i) {
        for (std::size_t j = 0; j < kJoints; ++j) {
          result[k * kJoints + j] += factor * q[(k + i) * kJoints + j];
        }
        factor *= h / static_cast<double>(i + 1);
      }
    }
  }

  // Check a message and keep it for the loop. Runs outside of the loop.
  void take(const hodyn_ros::msg::DesiredMotion & message)
  {
    const std::array<const std::vector<double> *, kRows> rows{
      &message.positions, &message.velocities, &message.accelerations, &message.jerks, &message.snaps};
    Desired desired;
    bool fits = message.joint_names.size() == kJoints;
    for (const auto * row : rows) {
      fits = fits && row->size() == kJoints;
    }
    for (std::size_t j = 0; fits && j < kJoints; ++j) {
      std::size_t from = 0;
      while (from < kJoints && message.joint_names[from] != panda_joint_names[j]) {
        ++from;
      }
      fits = from < kJoints;
      for (std::size_t k = 0; fits && k < kRows; ++k) {
        desired.q[k * kJoints + j] = (*rows[k])[from];
        fits = std::isfinite((*rows[k])[from]);
      }
    }
    if (!fits) {
      RCLCPP_WARN_THROTTLE(
        get_node()->get_logger(), *get_node()->get_clock(), 1000,
        "rejected a desired motion: it needs finite positions to snaps of the %zu joints of the exported code",
        kJoints);
      return;
    }
    desired.valid = true;
    desired.stamp = rclcpp::Time(message.header.stamp).nanoseconds();
    const std::lock_guard<std::mutex> lock(mutex_);
    latest_ = desired;
  }

  std::mutex mutex_;  // the loop only tries it, and takes the motion one period later where it is held
  Desired latest_;
  Desired desired_;         // the loop's copy
  bool following_ = false;  // or resting
  double since_ = 0.0;      // [s] since that began
  Motion rest_{};           // from where to brake and rest without a motion
  std::array<double, kJoints> position_{}, velocity_{};  // measured
  std::array<double, kJoints> command_{}, before_{};     // the last one, and that from which they fade over
  std::array<double, 2 * kJoints> link_{};
  std::array<double, (PANDA_ORDER + 1) * kJoints> motor_{};
  std::array<double, (PANDA_ORDER - 1) * kJoints> effort_{};
  std::vector<double> stiffness_, damping_;
  double timeout_ = 0.0, fade_ = 0.0, join_within_ = 0.0;
  bool motor_side_ = true;
  rclcpp::Subscription<hodyn_ros::msg::DesiredMotion>::SharedPtr subscription_;
};
}  // namespace hodyn_feedforward

PLUGINLIB_EXPORT_CLASS(hodyn_feedforward::FeedforwardController, controller_interface::ControllerInterface)
