#include "feedforward_controller.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "feedforward_controller_parameters.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace hodyn_ros
{
namespace
{
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::chrono::milliseconds kOneSwitch{100};  // of the controller manager, on a busy machine
constexpr int kMissed = 10;  // updates in a row that could not write all commands
constexpr unsigned kLastTries = 10000;  // to write what shall be left: no update follows that could
constexpr double kLate = 1.5;  // periods since the last update, from which on one is late

Side side_of(const std::string & name) { return name == "link" ? Side::kLink : Side::kMotor; }

guard::Vector row_of(const std::vector<double> & numbers)
{
  return {numbers.data(), numbers.data() + numbers.size()};
}

CommandConfig config_of(const feedforward_controller::Params & parameters)
{
  CommandConfig config;
  config.gains = {row_of(parameters.proportional), row_of(parameters.derivative)};
  config.states = side_of(parameters.states);
  config.efforts = side_of(parameters.efforts);
  config.zero_at_the_end = parameters.deactivation == "zero";
  guard::Config & allowed = config.guard;
  allowed.measured = config.gains.any();
  allowed.first_effort = guard::FirstEffort::kFound;
  allowed.efforts_act = parameters.commands == "effort";  // else drives have a loop of their own
  allowed.end = parameters.end == "zero" ? guard::End::kZero : guard::End::kHold;
  allowed.rejoin = parameters.rejoin == "never"    ? guard::Rejoin::kNever
                   : parameters.rejoin == "always" ? guard::Rejoin::kAlways
                                                   : guard::Rejoin::kGap;
  allowed.timeout = parameters.timeout;
  allowed.lead = parameters.lead;
  allowed.join_within = parameters.join_within;
  allowed.join_speed = parameters.join_speed;
  allowed.settle = parameters.settle;
  allowed.fade = parameters.fade;
  allowed.speed_margin = parameters.speed_margin;
  allowed.tracking_error = parameters.tracking_error;
  allowed.drive_timeout = parameters.drive_timeout;
  allowed.effort_step = parameters.effort_step;
  allowed.saturation_time = parameters.saturation_time;
  allowed.deceleration = parameters.deceleration;
  allowed.release_after = parameters.release_after;
  return config;
}

// Say which parameters from outside nobody has declared: a typo, most likely, and a limit that does not count.
void warn_of_unknown_parameters(rclcpp_lifecycle::LifecycleNode & node)
{
  const std::set<std::string> of_the_manager = {"type", "params_file", "fallback_controllers", "node_options_args"};
  for (const auto & given : node.get_node_parameters_interface()->get_parameter_overrides()) {
    const std::string & name = given.first;
    if (!node.has_parameter(name) && of_the_manager.count(name) == 0 && name.rfind("qos_overrides.", 0) != 0) {
      RCLCPP_WARN(
        node.get_logger(), "parameter '%s' is unknown, and ignored; `ros2 param list` shows what there is", name.c_str());
    }
  }
}
}  // namespace

FeedforwardController::CallbackReturn FeedforwardController::on_init()
{
  try {
    feedforward_controller::ParamListener listener(get_node());
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

FeedforwardController::CallbackReturn FeedforwardController::on_configure(const rclcpp_lifecycle::State &)
{
  // the executor of the controller manager may serve the topics and services of the configuration before meanwhile
  const std::lock_guard<std::mutex> lock(outside_);
  const auto node = get_node();
  try {
    const auto parameters = feedforward_controller::ParamListener(node).get_params();
    warn_of_unknown_parameters(*node);
    const auto library = std::make_shared<const RobotLibrary>(parameters.robot, parameters.robot_hash);
    joints_ = library->joint_names();
    coordinates_ = library->coordinate_names();
    for (const auto * gains : {&parameters.proportional, &parameters.derivative}) {
      if (gains->size() != parameters.proportional.size() || (!gains->empty() && gains->size() != joints_.size())) {
        throw std::runtime_error(
          "'proportional' and 'derivative' must have one gain for each of the " + std::to_string(joints_.size()) +
          " joints, or none");
      }
    }
    if (!parameters.proportional.empty() && parameters.commands != "effort") {
      throw std::runtime_error("drives that take positions feed back themselves; leave the gains empty");
    }
    kinds_ = {"effort"};
    if (parameters.commands != "effort") {
      kinds_ = {"position", "velocity", "effort"};
    }
    const double late = get_update_rate() > 0 ? kLate / get_update_rate() : guard::kInfinite;
    core_ = std::make_unique<FeedforwardCore>(library, config_of(parameters), late);
    holds_ = parameters.deactivation == "hold";
    const hodyn_robot & robot = library->table();
    RCLCPP_INFO(
      node->get_logger(), "robot '%s', order %u, %zu joints, from a file with SHA-256 %.12s", robot.robot,
      robot.order, joints_.size(), robot.hash);
  } catch (const std::exception & error) {
    RCLCPP_ERROR(node->get_logger(), "%s", error.what());
    return CallbackReturn::FAILURE;
  }
  position_.assign(joints_.size(), kUnknown);
  velocity_.assign(joints_.size(), kUnknown);
  reported_ = 0;
  subscription_ = node->create_subscription<hodyn_ros::msg::DesiredMotion>(
    "desired_motion", rclcpp::SensorDataQoS().keep_last(1),
    [this](const hodyn_ros::msg::DesiredMotion::ConstSharedPtr message) {
      const std::lock_guard<std::mutex> serving(outside_);
      take(*message);
    });
  stop_ = node->create_service<std_srvs::srv::Trigger>(
    "~/stop", [this](
                const std_srvs::srv::Trigger::Request::SharedPtr, std_srvs::srv::Trigger::Response::SharedPtr answer) {
      const std::lock_guard<std::mutex> serving(outside_);
      answer->success = active_;
      answer->message = active_ ? "stops for good; deactivate and activate to go on" : "nothing to stop: it is not active";
      core_->stop_asked = true;  // also between the two halves of a change of mode; an activation forgets it
    });
  start_ = node->create_service<std_srvs::srv::Trigger>(
    "~/start", [this](
                 const std_srvs::srv::Trigger::Request::SharedPtr, std_srvs::srv::Trigger::Response::SharedPtr answer) {
      const std::lock_guard<std::mutex> serving(outside_);
      answer->success = active_ && core_->has_stopped && !core_->stop_asked;
      core_->start_asked = answer->success;
      answer->message = answer->success ? "joins the motion as soon as all checks pass"
                                        : "nothing to start: it follows, waits for a motion, or has been stopped for good";
    });
  timer_ = node->create_wall_timer(std::chrono::milliseconds(100), [this] {
    const std::lock_guard<std::mutex> serving(outside_);
    report();
  });
  return CallbackReturn::SUCCESS;
}

// Serve nothing any more; a robot can be configured anew.
FeedforwardController::CallbackReturn FeedforwardController::on_cleanup(const rclcpp_lifecycle::State &)
{
  const std::lock_guard<std::mutex> lock(outside_);
  subscription_.reset();
  stop_.reset();
  start_.reset();
  timer_.reset();
  return CallbackReturn::SUCCESS;
}

controller_interface::InterfaceConfiguration FeedforwardController::command_interface_configuration() const
{
  return interfaces(kinds_);
}

controller_interface::InterfaceConfiguration FeedforwardController::state_interface_configuration() const
{
  return interfaces({"position", "velocity"});
}

// Joint by joint, in the order of the robot.
controller_interface::InterfaceConfiguration FeedforwardController::interfaces(
  const std::vector<std::string> & kinds) const
{
  controller_interface::InterfaceConfiguration result;
  result.type = controller_interface::interface_configuration_type::INDIVIDUAL;
  for (const auto & joint : joints_) {
    for (const auto & kind : kinds) {
      result.names.push_back(joint + "/" + kind);
    }
  }
  return result;
}

// Row by row as the robot takes them, so that `reference_interfaces_` is its argument.
std::vector<hardware_interface::CommandInterface> FeedforwardController::on_export_reference_interfaces()
{
  const std::size_t rows = core_->library().table().order + 3;
  reference_interfaces_.assign(rows * coordinates_.size(), kUnknown);
  std::vector<hardware_interface::CommandInterface> exported;
  static const char * const names[] = {"position", "velocity", "acceleration", "jerk", "snap"};
  for (std::size_t k = 0; k < rows; ++k) {
    const std::string kind = k < 5 ? names[k] : "derivative_" + std::to_string(k);
    for (std::size_t j = 0; j < coordinates_.size(); ++j) {
      exported.emplace_back(
        get_node()->get_name() + std::string("/") + coordinates_[j], kind,
        &reference_interfaces_[k * coordinates_.size() + j]);
    }
  }
  return exported;
}

bool FeedforwardController::on_set_chained_mode(bool)
{
  std::fill(reference_interfaces_.begin(), reference_interfaces_.end(), kUnknown);
  return true;
}

FeedforwardController::CallbackReturn FeedforwardController::on_activate(const rclcpp_lifecycle::State &)
{
  read_states();
  const auto known = [](double number) { return std::isfinite(number); };
  if (!std::all_of(position_.begin(), position_.end(), known)) {
    RCLCPP_ERROR(get_node()->get_logger(), "the position of a joint is not known; is the hardware active?");
    return CallbackReturn::FAILURE;
  }
  std::vector<double> efforts(joints_.size());  // what the drives do now: nothing, or what another controller has left
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    const auto effort = command_interfaces_[(j + 1) * kinds_.size() - 1].get_optional();
    if (!effort) {
      RCLCPP_ERROR(get_node()->get_logger(), "the effort of a joint cannot be read now; try again");
      return CallbackReturn::FAILURE;
    }
    efforts[j] = *effort;
  }
  // To change the mode of an active controller, ros2_control deactivates it and activates it anew in one switch.
  // That is no end: without this, the efforts of an arm in motion would stay at zero when its leading controller goes.
  // A chain that is off and soon on again is in the same mode as before. That was an end where its efforts went to
  // zero; where they stayed, they still push an arm that moves, and going on is what brakes it.
  const auto since = std::chrono::steady_clock::now() - deactivated_at_;
  if (since < kOneSwitch && (is_in_chained_mode() != chained_then_ || holds_) && core_->resume()) {
    RCLCPP_INFO(get_node()->get_logger(), "goes on, as it was off for a moment only");
    active_ = true;
    return write_commands() ? CallbackReturn::SUCCESS : CallbackReturn::ERROR;
  }
  core_->activate(position_.data(), efforts.data());
  missed_ = 0;
  updated_at_.reset();
  std::fill(reference_interfaces_.begin(), reference_interfaces_.end(), kUnknown);
  active_ = true;
  return CallbackReturn::SUCCESS;
}

FeedforwardController::CallbackReturn FeedforwardController::on_deactivate(const rclcpp_lifecycle::State &)
{
  active_ = false;
  deactivated_at_ = std::chrono::steady_clock::now();
  chained_then_ = is_in_chained_mode();
  if (core_->deactivate()) {
    RCLCPP_WARN(
      get_node()->get_logger(),
      "deactivated while it followed a motion: the drives must stop and hold the robot; call ~/stop first, and wait");
  }
  return write_commands(kLastTries) ? CallbackReturn::SUCCESS : CallbackReturn::ERROR;
}

controller_interface::return_type FeedforwardController::update_reference_from_subscribers(
  const rclcpp::Time &, const rclcpp::Duration &)
{
  return controller_interface::return_type::OK;  // the core takes the newest message itself
}

// The loop. `time` may be of another clock than the stamps of messages, so the node's counts; a steady one beside it
// shows where that is set.
controller_interface::return_type FeedforwardController::update_and_write_commands(
  const rclcpp::Time &, const rclcpp::Duration &)
{
  read_states();
  const double * chained = is_in_chained_mode() ? reference_interfaces_.data() : nullptr;
  const guard::Instant now = get_node()->now().nanoseconds();
  core_->update(now, elapsed(), position_.data(), velocity_.data(), chained);
  // Another thread may hold an interface just now; then its joint has the last command for one more period. An error
  // would deactivate the controller, in motion.
  missed_ = write_commands() ? 0 : missed_ + 1;
  return missed_ < kMissed ? controller_interface::return_type::OK : controller_interface::return_type::ERROR;
}

// How long ago the last update was [s]; not known in simulated time, which goes as it likes.
guard::Optional<double> FeedforwardController::elapsed()
{
  if (get_node()->get_clock()->ros_time_is_active()) {
    return {};
  }
  const auto now = std::chrono::steady_clock::now();
  const auto before = std::exchange(updated_at_, now);
  return before ? std::chrono::duration<double>(now - *before).count() : guard::Optional<double>();
}

void FeedforwardController::read_states()
{
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    position_[j] = state_interfaces_[2 * j].get_optional().value_or(kUnknown);
    velocity_[j] = state_interfaces_[2 * j + 1].get_optional().value_or(kUnknown);
  }
}

bool FeedforwardController::write_commands(unsigned tries)
{
  bool written = true;
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    std::size_t place = j * kinds_.size();
    if (kinds_.size() > 1) {
      written = command_interfaces_[place++].set_value(core_->commanded().position[j], tries) && written;
      written = command_interfaces_[place++].set_value(core_->commanded().velocity[j], tries) && written;
    }
    written = command_interfaces_[place].set_value(core_->commanded().effort[j], tries) && written;
  }
  return written;
}

// Check a message and hand it to the loop. Runs outside of the loop.
void FeedforwardController::take(const hodyn_ros::msg::DesiredMotion & message)
{
  const std::size_t n = coordinates_.size(), rows = core_->library().table().order + 3;
  const std::vector<double> * known[] = {
    &message.positions, &message.velocities, &message.accelerations, &message.jerks, &message.snaps};
  Desired & desired = core_->desired.next();
  const std::vector<std::string> & names = message.joint_names;
  for (const std::string & name : coordinates_) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      RCLCPP_WARN_THROTTLE(
        get_node()->get_logger(), *get_node()->get_clock(), 1000,
        "rejected a desired motion: joint '%s' is missing from it", name.c_str());
      return;
    }
  }
  bool fits = names.size() == n;
  for (std::size_t k = 0; fits && k < rows; ++k) {
    // derivatives above snap follow in one array, order by order
    const bool higher = k >= 5;
    const std::vector<double> & row = higher ? message.higher_derivatives : *known[k];
    const std::size_t from = higher ? (k - 5) * n : 0;
    fits = higher ? row.size() >= from + n : row.size() == n;
    for (std::size_t j = 0; fits && j < n; ++j) {
      const auto place = std::find(names.begin(), names.end(), coordinates_[j]);
      const double number = row[from + static_cast<std::size_t>(place - names.begin())];
      fits = std::isfinite(number);
      desired.q[k * n + j] = number;
    }
  }
  if (!fits) {
    RCLCPP_WARN_THROTTLE(
      get_node()->get_logger(), *get_node()->get_clock(), 1000,
      "rejected a desired motion: it needs finite derivatives up to order %zu of the %zu joints of the robot",
      rows - 1, n);
    return;
  }
  desired.stamp = rclcpp::Time(message.header.stamp).nanoseconds();
  core_->desired.publish();
}

void FeedforwardController::report()
{
  guard::Transition change;
  while (core_->events.pop(change)) {
    const std::string line = guard::text_of(change, joints_);
    if (change.after == guard::State::kJoining || change.after == guard::State::kFollowing) {
      RCLCPP_INFO(get_node()->get_logger(), "%s", line.c_str());
    } else {
      RCLCPP_WARN(get_node()->get_logger(), "%s", line.c_str());
    }
  }
  const long rejected = core_->rejected;
  if (rejected != reported_) {
    RCLCPP_WARN_THROTTLE(
      get_node()->get_logger(), *get_node()->get_clock(), 1000,
      "%ld references could not be followed so far; the last one: %s%s",
      rejected, guard::text_of(core_->rejected_for.load()),
      is_in_chained_mode() ? "; the leading controller has to write position and velocity of each joint" : "");
    reported_ = rejected;
  }
}
}  // namespace hodyn_ros

PLUGINLIB_EXPORT_CLASS(hodyn_ros::FeedforwardController, controller_interface::ChainableControllerInterface)
