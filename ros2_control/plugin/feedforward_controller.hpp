// hodyn_ros/FeedforwardController: references to efforts in the loop of ros2_control.
//
// What it computes is in core/feedforward_core.hpp; here are its interfaces, parameters, topic and log.

#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "core/feedforward_core.hpp"
#include "hodyn_ros/msg/desired_motion.hpp"
#include "rclcpp/rclcpp.hpp"
#include "std_srvs/srv/trigger.hpp"

namespace hodyn_ros
{
class FeedforwardController : public controller_interface::ChainableControllerInterface
{
public:
  using CallbackReturn = controller_interface::CallbackReturn;

  CallbackReturn on_init() override;
  CallbackReturn on_configure(const rclcpp_lifecycle::State & previous) override;
  CallbackReturn on_activate(const rclcpp_lifecycle::State & previous) override;
  CallbackReturn on_deactivate(const rclcpp_lifecycle::State & previous) override;
  CallbackReturn on_cleanup(const rclcpp_lifecycle::State & previous) override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;

protected:
  std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() override;
  bool on_set_chained_mode(bool chained) override;
  controller_interface::return_type update_reference_from_subscribers(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  controller_interface::InterfaceConfiguration interfaces(const std::vector<std::string> & kinds) const;
  guard::Optional<double> elapsed();
  void read_states();
  bool write_commands(unsigned tries = 10);
  void take(const hodyn_ros::msg::DesiredMotion & message);
  void report();

  std::mutex outside_;  // of the loop: what is served there, or changes what that uses
  std::unique_ptr<FeedforwardCore> core_;
  std::vector<std::string> joints_, coordinates_, kinds_;
  std::vector<double> position_, velocity_;  // measured; NaN where not known
  std::chrono::steady_clock::time_point deactivated_at_{};
  std::optional<std::chrono::steady_clock::time_point> updated_at_;
  std::atomic<bool> active_{false};
  bool chained_then_ = false;          // at the last deactivation
  bool holds_ = false;                 // efforts stay at a deactivation
  int missed_ = 0;                     // updates in a row that could not write all commands
  long reported_ = 0;                  // rejected references in the log
  rclcpp::Subscription<hodyn_ros::msg::DesiredMotion>::SharedPtr subscription_;
  rclcpp::Service<std_srvs::srv::Trigger>::SharedPtr stop_, start_;
  rclcpp::TimerBase::SharedPtr timer_;
};
}  // namespace hodyn_ros
