// The guard in C++ behind functions of C, for tests by ctypes.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "command_guard.hpp"
#include "reason_text.hpp"

namespace guard = hodyn_ros::guard;
using guard::CommandGuard;
using guard::Vector;

namespace
{
constexpr std::size_t kRows = 8;
using Model = void (*)(const double * motion, double * efforts);
using Start = int (*)(const double * sample, double * after);
using Step = int (*)(const double * sample, double period, const double * before, double * after);
char said[1000];

const char * say(const std::string & text)
{
  std::strncpy(said, text.c_str(), sizeof(said) - 1);
  return said;
}

void fill(guard::Series & series, const double * numbers, int rows)
{
  series.rows = static_cast<std::size_t>(rows);
  std::copy_n(numbers, series.rows * series.n, series.numbers.begin());
}

double * report(const guard::Reason & reason, double * to)
{
  *to++ = static_cast<int>(reason.cause);
  *to++ = reason.joint;
  *to++ = reason.value;
  *to++ = reason.limit;
  *to++ = reason.tripped;
  return to;
}
}  // namespace

extern "C" {

const char * guard_said() { return said; }

// The name of a figure of the configuration; null after the last.
const char * guard_figure(std::size_t i)
{
  return i < std::size(guard::kFigures) ? guard::kFigures[i].name : nullptr;
}

// `numbers`: the figures, and what follows below; `limits`: four rows; `gains`: two, or null; `model`, and `start` and
// `step` of an observer with rows of `size` numbers: null for none. Null for numbers that are out of range;
// guard_said() has which.
CommandGuard * guard_new(
  int n, const double * numbers, const double * limits, const double * gains, Model model, int size, Start start,
  Step step)
{
  const auto joints = static_cast<std::size_t>(n);
  guard::Config config;
  for (const guard::Figure & figure : guard::kFigures) {
    config.*figure.value = *numbers++;
  }
  config.measured = *numbers++ != 0.0;
  config.efforts_act = *numbers++ != 0.0;
  config.stop_on = static_cast<unsigned>(*numbers++);
  config.end = static_cast<guard::End>(static_cast<int>(*numbers++));
  config.first_effort = static_cast<guard::FirstEffort>(static_cast<int>(*numbers++));
  config.rejoin = static_cast<guard::Rejoin>(static_cast<int>(*numbers++));
  const auto row = [&](const double * from, std::size_t i) {
    return Vector(from + i * joints, from + (i + 1) * joints);
  };
  guard::EffortModel efforts;
  if (model != nullptr) {
    efforts = [model, joints, packed = Vector(3 * joints)](const guard::Motion & motion, Vector & result) mutable {
      std::copy(motion.position.begin(), motion.position.end(), packed.begin());
      std::copy(motion.velocity.begin(), motion.velocity.end(), packed.begin() + static_cast<long>(joints));
      std::copy(motion.acceleration.begin(), motion.acceleration.end(), packed.begin() + static_cast<long>(2 * joints));
      model(packed.data(), result.data());
    };
  }
  guard::Observer observer;
  if (step != nullptr) {
    observer = {static_cast<std::size_t>(size), start, step};
  }
  try {
    return new CommandGuard(
      joints, kRows, kRows, config, guard::Limits{row(limits, 0), row(limits, 1), row(limits, 2), row(limits, 3)},
      gains == nullptr ? guard::Gains{} : guard::Gains{row(gains, 0), row(gains, 1)}, efforts, observer);
  } catch (const std::invalid_argument & error) {
    say(error.what());
    return nullptr;
  }
}

void guard_delete(CommandGuard * own) { delete own; }
void guard_stop(CommandGuard * own) { own->stop(); }
int guard_start(CommandGuard * own) { return own->start(); }
void guard_listen(CommandGuard * own, int listening) { own->listening = listening != 0; }

int guard_measure(CommandGuard * own, std::int64_t now, std::int64_t stamp, const double * q, const double * v)
{
  return static_cast<int>(own->measure(now, stamp, q, v));
}

int guard_follow(
  CommandGuard * own, std::int64_t now, std::int64_t stamp, const double * positions, int position_rows,
  const double * efforts, int effort_rows, unsigned status)
{
  guard::Reference reference(own->found.size(), kRows, kRows);
  fill(reference.positions, positions, position_rows);
  fill(reference.efforts, efforts, effort_rows);
  return static_cast<int>(own->follow(now, stamp, reference, status));
}

// `elapsed`: NaN for none. `command`: position, velocity and effort; `to`: state, whether it has ended, why; how often
// the state has changed, and for each change the states before and after, and why.
int guard_command(CommandGuard * own, std::int64_t now, double elapsed, double * command, double * to)
{
  const bool commands = own->command(now, std::isnan(elapsed) ? std::nullopt : std::optional<double>(elapsed));
  if (commands) {
    for (const Vector * row : {&own->issued.motion.position, &own->issued.motion.velocity, &own->issued.effort}) {
      command = std::copy(row->begin(), row->end(), command);
    }
  }
  *to++ = static_cast<int>(own->state);
  *to++ = own->ended;
  to = report(own->reason, to);
  *to++ = static_cast<double>(own->changes);
  for (std::size_t i = 0; i < own->changes; ++i) {
    *to++ = static_cast<int>(own->transitions[i].before);
    *to++ = static_cast<int>(own->transitions[i].after);
    to = report(own->transitions[i].reason, to);
  }
  return commands;
}

void guard_reason(const CommandGuard * own, double * to) { report(own->reason, to); }

// How often each fault has ended the following.
void guard_faults(const CommandGuard * own, long * counts) { std::copy(own->faults.begin(), own->faults.end(), counts); }

const char * guard_reason_text(int cause, int joint, double value, double limit, int tripped)
{
  return say(guard::text_of({static_cast<guard::Cause>(cause), joint, value, limit, tripped != 0}, {"one", "two"}));
}
}
