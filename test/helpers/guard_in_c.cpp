// The functions of guard.h with packed arguments, for tests by ctypes.

#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "guard.h"
#include "reason_text.hpp"

namespace guard = hodyn_ros::guard;

namespace
{
using Model = void (*)(const double * links, const double * motors, double * efforts);
using Start = void (*)(void * context, const double * sample);
using Step = bool (*)(void * context, const double * sample, double period, double * efforts, double * deviations);
char said[1000];

// A guard with its memory, and a model that takes the motions of links and motors as one array each.
struct Own
{
  explicit Own(std::size_t n, Model with) : joints(n), model(with), links(3 * n) {}

  static void call(void * context, const double * motors, const double * deflection, double * effort)
  {
    Own & own = *static_cast<Own *>(context);
    for (std::size_t i = 0; i < own.links.size(); ++i) {
      own.links[i] = motors[i] - deflection[i];
    }
    own.model(own.links.data(), motors, effort);
  }

  std::size_t joints;
  Model model;
  std::vector<double> links;
  alignas(16) unsigned char memory[HODYN_GUARD_BYTES];
  hodyn_guard * made = nullptr;
};

const char * say(const std::string & text)
{
  std::strncpy(said, text.c_str(), sizeof(said) - 1);
  return said;
}

double * report(const hodyn_guard_reason & reason, double * to)
{
  *to++ = reason.cause;
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
// `step` of an observer: null for none; `stiffness` of springs. Null for numbers that are out of range; guard_said() has
// which.
Own * guard_new(
  int n, const double * numbers, const double * limits, const double * gains, Model model, Start start, Step step,
  const double * stiffness)
{
  const auto own = new Own(static_cast<std::size_t>(n), model);
  hodyn_guard_setup setup = {};
  setup.joints = own->joints;
  for (double & figure : setup.config.figures) {
    figure = *numbers++;
  }
  setup.config.measured = *numbers++ != 0.0;
  setup.config.efforts_act = *numbers++ != 0.0;
  setup.config.stop_on = static_cast<unsigned>(*numbers++);
  setup.config.end = static_cast<int>(*numbers++);
  setup.config.first_effort = static_cast<int>(*numbers++);
  setup.config.rejoin = static_cast<int>(*numbers++);
  for (const double ** row : {
         &setup.velocity, &setup.effort, &setup.effort_rate, &setup.mismatch, &setup.lower, &setup.upper}) {
    *row = limits;
    limits += n;
  }
  if (gains != nullptr) {
    setup.proportional = gains;
    setup.derivative = gains + n;
  }
  if (model != nullptr) {
    setup.model = Own::call;
    setup.model_context = own;
  }
  setup.observer_start = start;
  setup.observer_step = step;
  setup.stiffness = stiffness;
  hodyn_guard_unusable wrong;
  own->made = hodyn_guard_make(own->memory, sizeof(own->memory), &setup, &wrong);
  if (own->made == nullptr) {
    say(guard::text_of(guard::Unusable{wrong.name, wrong.least, wrong.most, wrong.found}));
    delete own;
    return nullptr;
  }
  return own;
}

void guard_delete(Own * own) { delete own; }
void guard_stop(Own * own) { hodyn_guard_stop(own->made); }
int guard_start(Own * own) { return hodyn_guard_start(own->made); }
void guard_listen(Own * own, int listening) { hodyn_guard_listen(own->made, listening != 0); }

int guard_measure(Own * own, std::int64_t now, std::int64_t stamp, const double * q, const double * v)
{
  return hodyn_guard_measure(own->made, now, stamp, q, v);
}

// `deflections`: three rows, or null for none.
int guard_follow(
  Own * own, std::int64_t now, std::int64_t stamp, const double * positions, int position_rows,
  const double * efforts, int effort_rows, const double * deflections, unsigned status)
{
  return hodyn_guard_follow(
    own->made, now, stamp, positions, static_cast<std::size_t>(position_rows), efforts,
    static_cast<std::size_t>(effort_rows), deflections, status);
}

// `elapsed`: NaN for none. `command`: position, velocity and effort; `to`: state, whether it has ended, why; how often
// the state has changed, and for each change the states before and after, and why.
int guard_command(Own * own, std::int64_t now, double elapsed, double * command, double * to)
{
  const std::size_t n = own->joints;
  const bool commands = hodyn_guard_command(own->made, now, elapsed, command, command + n, command + 2 * n);
  *to++ = hodyn_guard_state(own->made);
  *to++ = hodyn_guard_ended(own->made);
  to = report(hodyn_guard_why(own->made), to);
  hodyn_guard_change changes[HODYN_CHANGES];
  const std::size_t count = hodyn_guard_changes(own->made, changes);
  *to++ = static_cast<double>(count);
  for (std::size_t i = 0; i < count; ++i) {
    *to++ = changes[i].before;
    *to++ = changes[i].after;
    to = report(changes[i].reason, to);
  }
  return commands;
}

void guard_reason(const Own * own, double * to) { report(hodyn_guard_why(own->made), to); }

// How often each fault has ended the following.
void guard_faults(const Own * own, long * counts)
{
  for (int cause = 0; cause < HODYN_FAULTS; ++cause) {
    counts[cause] = hodyn_guard_faults(own->made, cause);
  }
}

const char * guard_reason_text(int cause, int joint, double value, double limit, int tripped)
{
  return say(guard::text_of({static_cast<guard::Cause>(cause), joint, value, limit, tripped != 0}, {"one", "two"}));
}
}
