// The guard in C++ behind functions of C, for tests by ctypes.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "command_guard.hpp"
#include "reason_text.hpp"

namespace guard = hodyn_ros::guard;
using guard::CommandGuard;
using guard::Vector;

namespace
{
using Model = void (*)(const double * links, const double * motors, double * efforts);
using Start = void (*)(void * context, const double * sample);
using Step = bool (*)(void * context, const double * sample, double period, double * efforts, double * deviations);
char said[1000];

// A guard, and a model that takes the motions of links and motors as one array each.
struct Own : CommandGuard
{
  Own(
    std::size_t joints, const guard::Config & allowed, const guard::Limits & limits, const guard::Gains & gains,
    Model with, const guard::Observer & observer)
  : CommandGuard(
      joints, allowed, limits, gains, with == nullptr ? guard::EffortModel{} : guard::EffortModel{call, this}, observer),
    model(with),
    links(3 * joints),
    motors(3 * joints)
  {
  }

  static void call(void * context, const guard::Motion & motion, const guard::Motion & deflection, double * effort)
  {
    Own & own = *static_cast<Own *>(context);
    const Vector * const rows[] = {&motion.position, &motion.velocity, &motion.acceleration};
    const Vector * const behind[] = {&deflection.position, &deflection.velocity, &deflection.acceleration};
    const std::size_t n = own.found.size();
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        own.motors[i * n + j] = (*rows[i])[j];
        own.links[i * n + j] = (*rows[i])[j] - (*behind[i])[j];
      }
    }
    own.model(own.links.data(), own.motors.data(), effort);
  }

  Model model;
  std::vector<double> links, motors;
};

const char * say(const std::string & text)
{
  std::strncpy(said, text.c_str(), sizeof(said) - 1);
  return said;
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
// `step` of an observer: null for none. Null for numbers that are out of range; guard_said() has which.
Own * guard_new(
  int n, const double * numbers, const double * limits, const double * gains, Model model, Start start, Step step)
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
  const auto own = new Own(
    joints, config, {row(limits, 0), row(limits, 1), row(limits, 2), row(limits, 3)},
    gains == nullptr ? guard::Gains{} : guard::Gains{row(gains, 0), row(gains, 1)}, model, {start, step, nullptr});
  if (own->unusable) {
    say(guard::text_of(own->unusable));
    delete own;
    return nullptr;
  }
  return own;
}

void guard_delete(Own * own) { delete own; }
void guard_stop(Own * own) { own->stop(); }
int guard_start(Own * own) { return own->start(); }
void guard_listen(Own * own, int listening) { own->listening = listening != 0; }

int guard_measure(Own * own, std::int64_t now, std::int64_t stamp, const double * q, const double * v)
{
  return static_cast<int>(own->measure(now, stamp, q, v));
}

// `deflections`: three rows, or null for none.
int guard_follow(
  Own * own, std::int64_t now, std::int64_t stamp, const double * positions, int position_rows,
  const double * efforts, int effort_rows, const double * deflections, unsigned status)
{
  guard::Reference reference(own->found.size());
  reference.positions.assign(positions, static_cast<std::size_t>(position_rows));
  reference.efforts.assign(efforts, static_cast<std::size_t>(effort_rows));
  if (deflections != nullptr) {
    for (Vector * row : {&reference.deflection.position, &reference.deflection.velocity, &reference.deflection.acceleration}) {
      std::copy_n(deflections, row->size(), row->begin());
      deflections += row->size();
    }
  }
  return static_cast<int>(own->follow(now, stamp, reference, status));
}

// `elapsed`: NaN for none. `command`: position, velocity and effort; `to`: state, whether it has ended, why; how often
// the state has changed, and for each change the states before and after, and why.
int guard_command(Own * own, std::int64_t now, double elapsed, double * command, double * to)
{
  const bool commands = own->command(now, std::isnan(elapsed) ? guard::Optional<double>() : elapsed);
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

void guard_reason(const Own * own, double * to) { report(own->reason, to); }

// How often each fault has ended the following.
void guard_faults(const Own * own, long * counts) 
{
  std::copy(std::begin(own->faults), std::end(own->faults), counts);
}

const char * guard_reason_text(int cause, int joint, double value, double limit, int tripped)
{
  return say(guard::text_of({static_cast<guard::Cause>(cause), joint, value, limit, tripped != 0}, {"one", "two"}));
}
}
