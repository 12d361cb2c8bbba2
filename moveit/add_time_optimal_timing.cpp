// hodyn_ros/AddTimeOptimalTiming, a planning response adapter of MoveIt. docs/moveit.md

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hodyn_ros/srv/retime_trajectory.hpp"
#include "moveit/planning_interface/planning_response_adapter.hpp"
#include "moveit/robot_trajectory/robot_trajectory.hpp"
#include "moveit_msgs/msg/robot_trajectory.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/rclcpp.hpp"

namespace hodyn_ros
{
namespace
{
using Clock = std::chrono::steady_clock;
using Retime = hodyn_ros::srv::RetimeTrajectory;
using Trajectory = trajectory_msgs::msg::JointTrajectory;
using moveit::core::MoveItErrorCode;
using robot_trajectory::RobotTrajectory;

constexpr char kName[] = "hodyn_ros/AddTimeOptimalTiming";
constexpr double kSame = 1e-6;  // [rad or m] between the ends of the path and those of the answer

// Why a path has no times.
struct Failure : std::runtime_error
{
  using std::runtime_error::runtime_error;
};

double seconds_of(const builtin_interfaces::msg::Duration & time)
{
  return static_cast<double>(time.sec) + 1e-9 * static_cast<double>(time.nanosec);
}

double distance(const std::vector<double> & one, const std::vector<double> & other)
{
  double most = 0.0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    most = std::max(most, std::abs(one[i] - other[i]));
  }
  return most;
}

// The positions of the joints of the group along a path; Failure where it has joints that a point cannot hold.
Trajectory positions_of(const RobotTrajectory & path)
{
  moveit_msgs::msg::RobotTrajectory msg;
  path.getRobotTrajectoryMsg(msg);
  const auto & wide = msg.multi_dof_joint_trajectory.joint_names;
  if (!wide.empty()) {
    throw Failure(
      "joint '" + wide.front() + "' has several degrees of freedom, which a joint trajectory does not hold; plan for "
      "a group without it");
  }
  for (auto & point : msg.joint_trajectory.points) {
    point.velocities.clear();
    point.accelerations.clear();
    point.effort.clear();
  }
  return std::move(msg.joint_trajectory);
}

// Refuses what does not lead along the path from its first to its last point, in rising time.
void require_answer(const Trajectory & path, const Trajectory & answer)
{
  const auto & points = answer.points;
  if (points.size() < 2) {
    throw Failure("its trajectory has " + std::to_string(points.size()) + " points");
  }
  std::vector<std::size_t> places;  // in the answer, of the joints of the path
  for (const auto & name : path.joint_names) {
    const auto found = std::find(answer.joint_names.begin(), answer.joint_names.end(), name);
    if (found == answer.joint_names.end()) {
      throw Failure("its trajectory lacks joint '" + name + "'");
    }
    places.push_back(static_cast<std::size_t>(found - answer.joint_names.begin()));
  }
  const std::size_t count = answer.joint_names.size();
  double before = -1.0;
  for (const auto & point : points) {
    const double time = seconds_of(point.time_from_start);
    const bool whole = point.positions.size() == count && point.velocities.size() == count &&
      point.accelerations.size() == count;
    if (!whole || !(time > before)) {
      throw Failure("its trajectory has points without velocities or accelerations, or times that do not rise");
    }
    before = time;
  }
  const auto missed = [&](const auto & given, const auto & made) {
    std::vector<double> own;
    for (const auto place : places) {
      own.push_back(made.positions[place]);
    }
    return distance(given.positions, own);
  };
  if (missed(path.points.front(), points.front()) > kSame || missed(path.points.back(), points.back()) > kSame) {
    throw Failure("its trajectory leads from or to another place than the path");
  }
}

// An answer with the joints of the path alone, in their order, and without efforts: a state of MoveIt holds
// accelerations or efforts, not both.
Trajectory in_order(const Trajectory & path, const Trajectory & answer)
{
  Trajectory result;
  result.header = path.header;
  result.joint_names = path.joint_names;
  std::vector<std::size_t> places;
  for (const auto & name : path.joint_names) {
    const auto found = std::find(answer.joint_names.begin(), answer.joint_names.end(), name);
    places.push_back(static_cast<std::size_t>(found - answer.joint_names.begin()));
  }
  for (const auto & point : answer.points) {
    auto & own = result.points.emplace_back();
    own.time_from_start = point.time_from_start;
    for (const auto place : places) {
      own.positions.push_back(point.positions[place]);
      own.velocities.push_back(point.velocities[place]);
      own.accelerations.push_back(point.accelerations[place]);
    }
  }
  return result;
}

// Parameters of the node of MoveIt, which may have declared them from what a launch file gives already.
class Parameters
{
public:
  Parameters() = default;
  Parameters(rclcpp::Node::SharedPtr node, const std::string & name_space)
  : node_(std::move(node)), prefix_(name_space.empty() ? "retime." : name_space + ".retime.")
  {
    declare("service", rclcpp::ParameterValue("trajectory_filter/retime"), "Service that times paths.");
    declare("timeout", rclcpp::ParameterValue(5.0), "How long it may take to answer [s].");
    declare("blend", rclcpp::ParameterValue(0.0), "Share of a step over which corners are rounded; 0: a spline.");
    declare("stiffness_error", rclcpp::ParameterValue(0.0), "Share by which springs may be wrong; 0: none.");
    declare(
      "velocity_scales", rclcpp::ParameterValue(std::vector<std::string>{"velocity"}),
      "Limits that max_velocity_scaling_factor scales.");
    declare(
      "acceleration_scales", rclcpp::ParameterValue(std::vector<std::string>{"acceleration"}),
      "Limits that max_acceleration_scaling_factor scales.");
  }

  std::string name(const std::string & parameter) const {return prefix_ + parameter;}
  std::string text(const std::string & parameter) const {return of(parameter).as_string();}
  std::vector<std::string> texts(const std::string & parameter) const {return of(parameter).as_string_array();}

  // Also where a file says 5 for 5.0.
  double number(const std::string & parameter) const
  {
    const auto value = of(parameter);
    const bool whole = value.get_type() == rclcpp::ParameterType::PARAMETER_INTEGER;
    return whole ? static_cast<double>(value.as_int()) : value.as_double();
  }

private:
  rclcpp::Parameter of(const std::string & parameter) const {return node_->get_parameter(name(parameter));}

  void declare(const std::string & parameter, const rclcpp::ParameterValue & value, const std::string & about)
  {
    if (!node_->has_parameter(name(parameter))) {
      rcl_interfaces::msg::ParameterDescriptor descriptor;
      descriptor.description = about;
      descriptor.dynamic_typing = value.get_type() == rclcpp::ParameterType::PARAMETER_DOUBLE;
      node_->declare_parameter(name(parameter), value, descriptor);
    }
  }

  rclcpp::Node::SharedPtr node_;
  std::string prefix_;
};
}  // namespace

/// Times a path by a service `retime`.
///
/// It has a node and an executor of its own: those of move_group wait for the plan, and could not take the answer.
class AddTimeOptimalTiming : public planning_interface::PlanningResponseAdapter
{
public:
  void initialize(const rclcpp::Node::SharedPtr & node, const std::string & parameter_namespace) override
  {
    parameters_ = Parameters(node, parameter_namespace);
    rclcpp::NodeOptions options;
    // remaps of names, as of `__node`, mean the node of MoveIt
    options.context(node->get_node_base_interface()->get_context())
    .use_global_arguments(false)
    .start_parameter_services(false)
    .start_parameter_event_publisher(false);
    std::string name = std::string(node->get_name()) + "_" + parameter_namespace + "_retime";
    const auto odd = [](unsigned char letter) {return !std::isalnum(letter);};
    std::replace_if(name.begin(), name.end(), odd, '_');
    node_ = std::make_shared<rclcpp::Node>(name, node->get_namespace(), options);
    client_ = node_->create_client<Retime>(parameters_.text("service"));
    rclcpp::ExecutorOptions alone;
    alone.context = options.context();
    executor_ = std::make_unique<rclcpp::executors::SingleThreadedExecutor>(alone);
    executor_->add_node(node_);
  }

  [[nodiscard]] std::string getDescription() const override {return kName;}

  /// Gives the path times, velocities and accelerations; where that fails it stays as it is.
  void adapt(
    const planning_scene::PlanningSceneConstPtr & /*planning_scene*/,
    const planning_interface::MotionPlanRequest & req, planning_interface::MotionPlanResponse & res) const override
  {
    if (!res.trajectory || res.trajectory->empty()) {
      fail(res, MoveItErrorCode::INVALID_MOTION_PLAN, "there is no path to time");
      return;
    }
    try {
      timed(req, *res.trajectory);
      res.error_code = MoveItErrorCode(MoveItErrorCode::SUCCESS);
    } catch (const std::exception & error) {
      fail(res, MoveItErrorCode::FAILURE, error.what());
    }
  }

private:
  void fail(planning_interface::MotionPlanResponse & res, std::int32_t code, const std::string & message) const
  {
    RCLCPP_ERROR(rclcpp::get_logger("hodyn_ros.add_time_optimal_timing"), "%s", message.c_str());
    res.error_code = MoveItErrorCode(code, message, getDescription());
  }

  void timed(const planning_interface::MotionPlanRequest & req, RobotTrajectory & trajectory) const
  {
    RobotTrajectory path(trajectory, true);
    path.unwind();  // continuous joints go on over half a turn
    auto request = std::make_shared<Retime::Request>();
    request->path = positions_of(path);
    const auto & points = request->path.points;
    if (points.empty()) {
      throw Failure("the group '" + path.getGroupName() + "' has no joints to move");
    }
    const moveit::core::RobotState first(path.getFirstWayPoint());
    Trajectory made;
    const bool stands = std::all_of(points.begin(), points.end(), [&](const auto & point) {
      return distance(points.front().positions, point.positions) <= kSame;
    });
    if (stands) {
      made.joint_names = request->path.joint_names;
      made.points.push_back(points.front());
      made.points.front().time_from_start = builtin_interfaces::msg::Duration();
      made.points.front().velocities.assign(made.joint_names.size(), 0.0);
      made.points.front().accelerations.assign(made.joint_names.size(), 0.0);
    } else {
      request->blend = parameters_.number("blend");
      request->stiffness_error = parameters_.number("stiffness_error");
      scale(*request, "velocity_scales", req.max_velocity_scaling_factor);
      scale(*request, "acceleration_scales", req.max_acceleration_scaling_factor);
      made = asked(request);
    }
    path.setRobotTrajectoryMsg(first, made);
    trajectory.swap(path);
  }

  // As MoveIt has it: 0 is not set, and nothing goes faster than the limits.
  void scale(Retime::Request & request, const std::string & parameter, double factor) const
  {
    if (!(factor > 0.0 && factor < 1.0)) {
      return;
    }
    for (const auto & quantity : parameters_.texts(parameter)) {
      request.quantities.push_back(quantity);
      request.shares.push_back(factor);
    }
  }

  Trajectory asked(const Retime::Request::SharedPtr & request) const
  {
    const std::string service = client_->get_service_name();
    const double timeout = parameters_.number("timeout");
    if (!(timeout > 0.0 && timeout < 1e6)) {
      throw Failure(parameters_.name("timeout") + " must be positive, and less than a million seconds");
    }
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout));
    const auto left = [end] {  // never negative, which would mean for ever
      return std::max(end - Clock::now(), Clock::duration(std::chrono::milliseconds(1)));
    };
    std::ostringstream within;
    within << "within the " << timeout << " s of " << parameters_.name("timeout");
    const std::scoped_lock one_at_a_time(mutex_);
    if (!client_->wait_for_service(left())) {
      throw Failure("no service '" + service + "' appears " + within.str() + "; start trajectory_filter, or name its "
        "service in " + parameters_.name("service"));
    }
    auto pending = client_->async_send_request(request);
    if (executor_->spin_until_future_complete(pending.future, left()) != rclcpp::FutureReturnCode::SUCCESS) {
      client_->remove_pending_request(pending);
      throw Failure("service '" + service + "' does not answer " + within.str());
    }
    const auto answer = pending.future.get();
    if (!answer->success) {
      const auto scales = request->quantities.empty() ? "" : "; scaling factors act on the limits that " +
        parameters_.name("velocity_scales") + " and acceleration_scales name";
      throw Failure("service '" + service + "' times no such path: " + answer->message + scales);
    }
    try {
      require_answer(request->path, answer->trajectory);
    } catch (const Failure & error) {
      throw Failure("service '" + service + "' is not to be trusted: " + error.what());
    }
    return in_order(request->path, answer->trajectory);
  }

  Parameters parameters_;
  rclcpp::Node::SharedPtr node_;
  rclcpp::Client<Retime>::SharedPtr client_;
  std::unique_ptr<rclcpp::executors::SingleThreadedExecutor> executor_;
  mutable std::mutex mutex_;
};
}  // namespace hodyn_ros

PLUGINLIB_EXPORT_CLASS(hodyn_ros::AddTimeOptimalTiming, planning_interface::PlanningResponseAdapter)
