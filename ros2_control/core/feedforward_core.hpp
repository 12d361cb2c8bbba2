// The commands of a robot whose shared object is loaded, between threads that may wait and a loop that must not.
//
// All of hodyn_ros/FeedforwardController that is not ros2_control. `update` neither allocates nor locks.

#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "../guard/reason_text.hpp"
#include "guarded_feedforward.hpp"
#include "lock_free.hpp"
#include "robot_library.hpp"

namespace hodyn_ros
{
// A desired motion about one instant.
struct Desired
{
  Desired(std::size_t coordinates, std::size_t orders) : q(coordinates * orders) {}
  guard::Instant stamp = 0;
  std::vector<double> q;  // derivative k of coordinate j at [k * coordinates + j]
};

// What a late update has found.
struct SetAside
{
  SetAside(std::size_t joints, std::size_t references) : measured(joints), rates(joints), chained(references) {}

  void keep(
    guard::Instant now, double since, const double * positions, const double * velocities, const double * references)
  {
    at = now;
    elapsed = since;
    holds = true;
    std::copy_n(positions, measured.size(), measured.begin());
    std::copy_n(velocities, rates.size(), rates.begin());
    std::fill(chained.begin(), chained.end(), std::numeric_limits<double>::quiet_NaN());
    if (references != nullptr) {
      std::copy_n(references, chained.size(), chained.begin());
    }
  }

  bool holds = false;
  guard::Instant at = 0;
  double elapsed = 0.0;  // [s] since the last update that was not set aside
  std::vector<double> measured, rates, chained;
};

class FeedforwardCore
{
public:
  // `late` [s]: between two updates, from which on the second is late.
  FeedforwardCore(
    std::shared_ptr<const RobotLibrary> library, const CommandConfig & config, double late = guard::kInfinite)
  : desired(Desired(library->table().coordinates, library->table().order + 3)),
    library_(std::move(library)),
    robot_(library_->table()),
    config_(config),
    late_(late),
    memory_(new std::max_align_t[robot_.memory / sizeof(std::max_align_t) + 1]),
    stop_memory_(new std::max_align_t[robot_.memory / sizeof(std::max_align_t) + 1])
  {
    reset();
    if (commands_->unusable) {
      throw std::invalid_argument(guard::text_of(commands_->unusable));
    }
  }

  // Begin anew where the robot is; `effort` is what stands on the interfaces, and stays until a motion is joined.
  void activate(const double * measured, const double * found_effort)
  {
    reset();
    commands_->begin(measured, found_effort);
    desired.take();  // what was desired before does not count
  }

  // The commands of one period, for `commanded`. `elapsed` [s]: the time since the update before by a clock that cannot
  // be set, where there is one. `chained`: references of another controller, row by row as q, NaN where it gives none;
  // null: the last desired motion counts.
  void update(
    guard::Instant now, guard::Optional<double> elapsed, const double * measured, const double * rates,
    const double * chained)
  {
    if (stop_asked.load(std::memory_order_relaxed)) {
      commands_->stop(false);  // whoever asked may never deactivate: a robot that is held stays so
    }
    if (start_asked.exchange(false, std::memory_order_relaxed)) {
      commands_->start();
    }
    take_in_time(now, elapsed, measured, rates, chained);
    if (chained == nullptr && desired.take()) {
      follow(now, desired.current().stamp, desired.current().q.data());
    }
    commands_->command(now, elapsed);
    for (std::size_t i = 0; i < guard().changes; ++i) {
      events.push(guard().transitions[i]);
    }
    say_what_lasts(now);
    has_stopped.store(
      guard().state == guard::State::kStopping || guard().state == guard::State::kStopped, std::memory_order_relaxed);
  }

  // Leave what shall be on the interfaces; true where a motion was followed, or the robot is not at rest yet.
  bool deactivate()
  {
    velocity_then_ = commands_->velocity;
    effort_then_ = commands_->effort;
    is_off_ = true;
    commands_->leave();
    return guard().state != guard::State::kWaiting && guard().state != guard::State::kStopped;
  }

  // Go on after a `deactivate` as if it had not been; false where there was none, as of a robot that is configured anew.
  bool resume()
  {
    if (!is_off_) {
      return false;
    }
    commands_->velocity = velocity_then_;
    commands_->effort = effort_then_;
    is_off_ = false;
    return true;
  }

  const guard::CommandGuard & guard() const { return commands_->guard(); }
  const RobotLibrary & library() const { return *library_; }
  const GuardedFeedforward & commanded() const { return *commands_; }  // position, velocity, effort

  Latest<Desired> desired;               // written by whoever takes the messages
  std::atomic<bool> stop_asked{false};   // to stop for good
  std::atomic<bool> start_asked{false};  // to join a motion again, although a fault has stopped the robot
  std::atomic<bool> has_stopped{false};  // whether there is something to start
  std::atomic<long> rejected{0};         // references that could not be followed,
  std::atomic<guard::Taken> rejected_for{guard::Taken::kYes};  // and why the last of them
  Events<guard::Transition, 64> events;

private:
  void reset()
  {
    stop_asked = start_asked = has_stopped = aside_.holds = is_off_ = false;
    late_for_ = 0.0;
    said_.reset();
    lasting_.reset();
    commands_ = std::make_unique<GuardedFeedforward>(
      robot_, config_, memory_.get(), stop_memory_.get(), robot_.memory);
  }

  // Take measurements and chained references. Where the update is late, the loop was held up before they were taken or
  // after, and nobody can tell; old ones, taken for new, would be a jump in the update that follows at once. So they are
  // set aside, and what was known before is carried on; the next update in time counts again. They are taken where that
  // is so late that nothing were known for too long; in a loop that goes on being late, every other time.
  void take_in_time(
    guard::Instant now, const guard::Optional<double> & elapsed, const double * measured, const double * rates,
    const double * chained)
  {
    const double longest = std::min(config_.guard.timeout, config_.guard.measurement_timeout);
    const bool late = elapsed && late_ < *elapsed && *elapsed < longest;
    late_for_ = late ? late_for_ + *elapsed : 0.0;
    if (late && (!aside_.holds || late_for_ < longest)) {
      aside_.keep(now, *elapsed + (aside_.holds ? aside_.elapsed : 0.0), measured, rates, chained);
      return;
    }
    if (late && aside_.elapsed + *elapsed >= longest) {
      take(aside_.at, aside_.measured.data(), aside_.rates.data(), chained == nullptr ? nullptr : aside_.chained.data());
    }
    take(now, measured, rates, chained);
    aside_.holds = false;
  }

  void take(guard::Instant now, const double * measured, const double * rates, const double * chained)
  {
    commands_->measure(now, now, measured, rates);
    if (chained != nullptr) {
      follow_chained(now, chained);
    }
  }

  // NaN among positions and velocities is no reference; higher derivatives that are not given count as zero.
  void follow_chained(guard::Instant now, const double * chained)
  {
    Desired & q = chained_;
    const std::size_t n = robot_.coordinates;
    for (std::size_t i = 0; i < q.q.size(); ++i) {
      if (i < 2 * n && !std::isfinite(chained[i])) {
        reject(guard::Taken::kNumbers);
        return;
      }
      q.q[i] = std::isnan(chained[i]) ? 0.0 : chained[i];
    }
    follow(now, now, q.q.data());
  }

  // Say once why a motion is not joined, where that has lasted for a second: no change of state says it.
  void say_what_lasts(guard::Instant now)
  {
    const guard::Cause cause = guard().reason.cause;
    if (guard().changes > 0) {
      said_ = cause;
    }
    if (lasting_ != cause) {
      lasting_ = cause;
      since_ = now;
    }
    if (said_ != cause && now - since_ >= kLasts) {
      said_ = cause;
      events.push({guard().state, guard().state, guard().reason});
    }
  }

  void follow(guard::Instant now, guard::Instant stamp, const double * q)
  {
    const guard::Taken taken = commands_->follow(now, stamp, q);
    if (taken != guard::Taken::kYes) {
      reject(taken);
    }
  }

  void reject(guard::Taken why)
  {
    rejected_for.store(why, std::memory_order_relaxed);
    rejected.fetch_add(1, std::memory_order_release);
  }

  std::shared_ptr<const RobotLibrary> library_;
  const hodyn_robot & robot_;
  CommandConfig config_;
  double late_;
  double late_for_ = 0.0;  // [s] of updates late one after another
  static constexpr guard::Instant kLasts = 1000000000;  // [ns]
  guard::Optional<guard::Cause> said_, lasting_;  // why it is in its state: what was said last, and what it is now
  guard::Instant since_ = 0;  // which it has been
  std::unique_ptr<std::max_align_t[]> memory_, stop_memory_;
  std::unique_ptr<GuardedFeedforward> commands_;
  Desired chained_{robot_.coordinates, robot_.order + 3};
  SetAside aside_{robot_.joints, chained_.q.size()};
  bool is_off_ = false;                        // since the last `deactivate`,
  guard::Vector velocity_then_, effort_then_;  // before which they were these
};
}  // namespace hodyn_ros
