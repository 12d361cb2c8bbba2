// The ROS-free core of the ros2_control controller behind functions of C, for tests by ctypes.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/feedforward_core.hpp"

namespace
{
long allocations = 0;
char said[1000];
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

using hodyn_ros::CommandConfig;
using hodyn_ros::FeedforwardCore;
using hodyn_ros::RobotLibrary;
using hodyn_ros::Side;

extern "C" {

// Null where the robot cannot be loaded; core_said() has why.
FeedforwardCore * core_new(
  const char * path, const char * hash, const double * gains, int link, int first, int zero, int rejoin, double timeout)
{
  try {
    const auto library = std::make_shared<const RobotLibrary>(path, hash);
    const auto n = static_cast<std::ptrdiff_t>(library->table().joints);
    CommandConfig config;
    config.states = config.efforts = link != 0 ? Side::kLink : Side::kMotor;
    config.zero_at_the_end = zero != 0;
    config.guard.first_effort = static_cast<hodyn_ros::guard::FirstEffort>(first);
    config.guard.rejoin = static_cast<hodyn_ros::guard::Rejoin>(rejoin);
    config.guard.timeout = timeout;
    config.guard.efforts_act = true;
    if (gains != nullptr) {
      config.gains = {{gains, gains + n}, {gains + n, gains + 2 * n}};
      config.guard.measured = true;
    }
    return new FeedforwardCore(library, config, 0.0015);
  } catch (const std::exception & error) {
    std::strncpy(said, error.what(), sizeof(said) - 1);
    return nullptr;
  }
}

void core_delete(FeedforwardCore * core) { delete core; }
const char * core_said() { return said; }
long core_rejected(const FeedforwardCore * core) { return core->rejected; }
const char * core_rejected_for(const FeedforwardCore * core)
{
  return hodyn_ros::guard::text_of(core->rejected_for.load());
}
void core_stop(FeedforwardCore * core) { core->stop_asked = true; }
void core_start(FeedforwardCore * core) { core->start_asked = true; }
int core_has_stopped(const FeedforwardCore * core) { return core->has_stopped; }
int core_deactivate(FeedforwardCore * core) { return core->deactivate(); }
int core_resume(FeedforwardCore * core) { return core->resume(); }
void core_activate(FeedforwardCore * core, const double * q, const double * effort) { core->activate(q, effort); }

void core_desire(FeedforwardCore * core, std::int64_t stamp, const double * q)
{
  hodyn_ros::Desired & next = core->desired.next();
  next.stamp = stamp;
  std::copy_n(q, next.q.size(), next.q.begin());
  core->desired.publish();
}

// `elapsed`: NaN for none. Returns how often memory was allocated.
long core_update(
  FeedforwardCore * core, std::int64_t now, double elapsed, const double * q, const double * v, const double * chained)
{
  const long before = allocations;
  const auto since = std::isnan(elapsed) ? hodyn_ros::guard::Optional<double>() : elapsed;
  core->update(now, since, q, v, chained);
  return allocations - before;
}

// Positions, velocities and efforts; returns the state.
int core_command(const FeedforwardCore * core, double * command)
{
  const hodyn_ros::GuardedFeedforward & all = core->commanded();
  for (const auto * row : {&all.position, &all.velocity, &all.effort}) {
    command = std::copy(row->begin(), row->end(), command);
  }
  return static_cast<int>(core->guard().state);
}

// The next line for the log; null where there is none.
const char * core_event(FeedforwardCore * core)
{
  hodyn_ros::guard::Transition change;
  if (!core->events.pop(change)) {
    return nullptr;
  }
  std::strncpy(said, hodyn_ros::guard::text_of(change, core->library().joint_names()).c_str(), sizeof(said) - 1);
  return said;
}
}
