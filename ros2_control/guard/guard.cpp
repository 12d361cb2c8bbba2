// The functions of guard.h.

#include "guard.h"

#include "command_guard.hpp"

namespace core = hodyn_ros::guard;

struct hodyn_guard : core::CommandGuard
{
  hodyn_guard(
    const hodyn_guard_setup & setup, const core::Config & allowed, const core::Limits & limits, const core::Gains & gains)
  : core::CommandGuard(
      setup.joints, allowed, limits, gains,
      setup.model == nullptr ? core::EffortModel{} : core::EffortModel{efforts_of, this},
      core::Observer{setup.observer_start, setup.observer_step, setup.observer_context, setup.stiffness}),
    model(setup.model),
    context(setup.model_context)
  {
  }

  static void efforts_of(void * own, const core::Motion & motion, const core::Motion & deflection, double * effort)
  {
    hodyn_guard & self = *static_cast<hodyn_guard *>(own);
    pack(motion, self.motion);
    pack(deflection, self.deflection);
    self.model(self.context, self.motion, self.deflection, effort);
  }

  static void pack(const core::Motion & motion, double * to)
  {
    const core::Vector * const rows[] = {&motion.position, &motion.velocity, &motion.acceleration};
    for (const core::Vector * row : rows) {
      for (size_t j = 0; j < row->size(); ++j) {
        *to++ = (*row)[j];
      }
    }
  }

  static void * operator new(size_t, void * memory) noexcept { return memory; }

  void (*model)(void *, const double *, const double *, double *);
  void * context;
  double motion[3 * core::kMostJoints] = {}, deflection[3 * core::kMostJoints] = {};
};

namespace
{
static_assert(sizeof(hodyn_guard) <= HODYN_GUARD_BYTES, "a guard takes more than it says");
static_assert(sizeof(core::kFigures) / sizeof(*core::kFigures) == HODYN_FIGURES, "write guard_words.h anew");
static_assert(core::kFaults == HODYN_FAULTS, "write guard_words.h anew");
static_assert(static_cast<int>(core::Taken::kJump) == HODYN_TAKEN_JUMP, "both have the same words");
static_assert(sizeof(core::CommandGuard::transitions) / sizeof(core::Transition) == HODYN_CHANGES, "as many");

// Numbers of joints; `otherwise` where there are none.
core::Vector row(const double * from, size_t joints, double otherwise)
{
  return from == nullptr ? core::Vector(joints, otherwise) : core::Vector(from, from + joints);
}

core::Vector row(const double * from, size_t joints)
{
  return from == nullptr ? core::Vector() : core::Vector(from, from + joints);
}

core::Config config_of(const hodyn_guard_config & from)
{
  core::Config config;
  for (size_t i = 0; i < HODYN_FIGURES; ++i) {
    config.*core::kFigures[i].value = from.figures[i];
  }
  config.measured = from.measured;
  config.efforts_act = from.efforts_act;
  config.stop_on = from.stop_on;
  config.end = static_cast<core::End>(from.end);
  config.first_effort = static_cast<core::FirstEffort>(from.first_effort);
  config.rejoin = static_cast<core::Rejoin>(from.rejoin);
  return config;
}

hodyn_guard_reason reason_of(const core::Reason & from)
{
  return {static_cast<int>(from.cause), from.joint, from.value, from.limit, from.tripped};
}

void write(const core::Vector & from, double * to)
{
  for (size_t j = 0; to != nullptr && j < from.size(); ++j) {
    to[j] = from[j];
  }
}
}  // namespace

void hodyn_guard_defaults(hodyn_guard_config * config)
{
  const core::Config from;
  for (size_t i = 0; i < HODYN_FIGURES; ++i) {
    config->figures[i] = from.*core::kFigures[i].value;
  }
  config->measured = from.measured;
  config->efforts_act = from.efforts_act;
  config->stop_on = from.stop_on;
  config->end = static_cast<int>(from.end);
  config->first_effort = static_cast<int>(from.first_effort);
  config->rejoin = static_cast<int>(from.rejoin);
}

hodyn_guard * hodyn_guard_make(
  void * memory, size_t bytes, const hodyn_guard_setup * setup, hodyn_guard_unusable * wrong)
{
  const size_t n = setup->joints;
  const core::Config config = config_of(setup->config);
  const core::Limits limits = {
    row(setup->velocity, n, core::kInfinite), row(setup->effort, n, core::kInfinite),
    row(setup->effort_rate, n, core::kInfinite), row(setup->mismatch, n, core::kInfinite),
    row(setup->lower, n, -core::kInfinite), row(setup->upper, n, core::kInfinite)};
  const core::Gains gains = {row(setup->proportional, n), row(setup->derivative, n)};
  core::Unusable unusable = core::find_unusable(n, config, limits, gains);
  if (memory == nullptr || bytes < sizeof(hodyn_guard)) {
    unusable = {
      "bytes of memory", static_cast<double>(sizeof(hodyn_guard)), core::kInfinite, static_cast<double>(bytes)};
  } else if (const size_t past = core::misaligned(memory, alignof(hodyn_guard))) {
    unusable = {"bytes of memory past its alignment", 0.0, 0.0, static_cast<double>(past)};
  }
  if (unusable) {
    if (wrong != nullptr) {
      *wrong = {unusable.name, unusable.least, unusable.most, unusable.found};
    }
    return nullptr;
  }
  return new (memory) hodyn_guard(*setup, config, limits, gains);
}

int hodyn_guard_measure(
  hodyn_guard * guard, int64_t now, int64_t stamp, const double * position, const double * velocity)
{
  return static_cast<int>(guard->measure(now, stamp, position, velocity));
}

int hodyn_guard_follow(
  hodyn_guard * guard, int64_t now, int64_t stamp, const double * positions, size_t position_rows,
  const double * efforts, size_t effort_rows, const double * deflections, unsigned status)
{
  core::Reference reference(guard->found.size());
  reference.positions.assign(positions, position_rows);
  reference.efforts.assign(efforts, effort_rows);
  if (deflections != nullptr) {
    core::Motion & ahead = reference.deflection;
    core::Vector * const rows[] = {&ahead.position, &ahead.velocity, &ahead.acceleration};
    for (core::Vector * row : rows) {
      for (size_t j = 0; j < row->size(); ++j) {
        (*row)[j] = *deflections++;
      }
    }
  }
  return static_cast<int>(guard->follow(now, stamp, reference, status));
}

bool hodyn_guard_command(
  hodyn_guard * guard, int64_t now, double elapsed, double * position, double * velocity, double * effort)
{
  if (!guard->command(now, core::is_nan(elapsed) ? core::Optional<double>() : elapsed)) {
    return false;
  }
  write(guard->issued.motion.position, position);
  write(guard->issued.motion.velocity, velocity);
  write(guard->issued.effort, effort);
  return true;
}

void hodyn_guard_stop(hodyn_guard * guard) { guard->stop(); }
bool hodyn_guard_start(hodyn_guard * guard) { return guard->start(); }
void hodyn_guard_listen(hodyn_guard * guard, bool listening) { guard->listening = listening; }
void hodyn_guard_found(hodyn_guard * guard, const double * effort)
{
  guard->found = core::Vector(effort, effort + guard->found.size());
}

int hodyn_guard_state(const hodyn_guard * guard) { return static_cast<int>(guard->state); }
bool hodyn_guard_ended(const hodyn_guard * guard) { return guard->ended; }
hodyn_guard_reason hodyn_guard_why(const hodyn_guard * guard) { return reason_of(guard->reason); }
long hodyn_guard_faults(const hodyn_guard * guard, int cause)
{
  return cause >= 0 && cause < core::kFaults ? guard->faults[cause] : 0;
}

size_t hodyn_guard_changes(const hodyn_guard * guard, hodyn_guard_change * changes)
{
  for (size_t i = 0; i < guard->changes; ++i) {
    const core::Transition & one = guard->transitions[i];
    changes[i] = {static_cast<int>(one.before), static_cast<int>(one.after), reason_of(one.reason)};
  }
  return guard->changes;
}

const char * hodyn_state_name(int state) { return core::name_of(static_cast<core::State>(state)); }
const char * hodyn_cause_name(int cause) { return core::name_of(static_cast<core::Cause>(cause)); }
