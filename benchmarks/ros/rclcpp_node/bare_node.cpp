// As bare_node.py: takes a desired motion and publishes it again.
#include <memory>

#include "hodyn_ros/msg/desired_motion.hpp"
#include "rclcpp/rclcpp.hpp"

using hodyn_ros::msg::DesiredMotion;

int main(int argc, char ** argv)
{
  rclcpp::init(argc, argv);
  auto node = std::make_shared<rclcpp::Node>("bare_node");
  const auto qos = rclcpp::QoS(1000).reliable();
  auto publisher = node->create_publisher<DesiredMotion>("republished_motion", qos);
  auto subscription = node->create_subscription<DesiredMotion>(
    "desired_motion", qos, [publisher](const DesiredMotion & msg) {publisher->publish(msg);});
  rclcpp::spin(node);
  rclcpp::shutdown();
  return 0;
}
