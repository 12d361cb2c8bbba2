// Why a guard is in its state, as a line for the log. Not for the loop: it allocates.

#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "command_guard.hpp"

namespace hodyn_ros::guard
{
// Fill the places {value:FORMAT}, {limit:FORMAT} and {joint!r} of a sentence, whose formats are those of printf.
inline std::string filled(const std::string & sentence, const Reason & reason, const std::vector<std::string> & joints)
{
  std::string text;
  for (std::size_t at = 0; at < sentence.size();) {
    const std::size_t open = sentence.find('{', at), close = sentence.find('}', at);
    if (open == std::string::npos || close == std::string::npos) {
      return text + sentence.substr(at);
    }
    text += sentence.substr(at, open - at);
    const std::string place = sentence.substr(open + 1, close - open - 1);
    if (place == "joint!r") {
      text += reason.joint < 0 ? "''" : "'" + joints[static_cast<std::size_t>(reason.joint)] + "'";
    } else {
      const std::string format = "%" + place.substr(place.find(':') + 1);
      char number[64];
      std::snprintf(number, sizeof(number), format.c_str(), place[0] == 'v' ? reason.value : reason.limit);
      text += number;
    }
    at = close + 1;
  }
  return text;
}

// The name of the cause, and what was found.
inline std::string text_of(const Reason & reason, const std::vector<std::string> & joints)
{
  std::string sentence = sentence_of(reason.cause);
  if (sentence.empty() && reason.is_fault()) {
    sentence = reason.joint < 0 ? "found {value:.3g}, " : "joint {joint!r} has {value:.3g}, ";
    sentence += "{limit:.3g} are allowed";
  }
  std::string text = name_of(reason.cause);
  text += reason.tripped ? ", so the motors let go" : "";
  text += sentence.empty() ? "" : ": " + filled(sentence, reason, joints);
  if (reason.cause == Cause::kStatus) {
    const char * between = " ";
    for (const StatusName & one : kStatusNames) {
      if (static_cast<unsigned>(reason.value) & one.bit) {
        text += std::string(between) + one.name;
        between = " | ";
      }
    }
  }
  return text;
}

// What a guard cannot be made with.
inline std::string text_of(const Unusable & wrong)
{
  char text[200];
  std::snprintf(
    text, sizeof(text), "%s must be within %g and %g, found %g", wrong.name, wrong.least, wrong.most, wrong.found);
  return text;
}

// Why a feedforward was not taken.
inline const char * text_of(Taken taken)
{
  switch (taken) {
    case Taken::kClock:
      return "its stamp is further from the clock than the timeout, or not after the one before";
    case Taken::kNumbers:
      return "its numbers are none, or more than the robot can do";
    case Taken::kJump:
      return "it does not continue the one before";
    default:
      return "it was taken";
  }
}

// A change of state, and why.
inline std::string text_of(const Transition & change, const std::vector<std::string> & joints)
{
  return std::string(name_of(change.before)) + " -> " + name_of(change.after) + ": " + text_of(change.reason, joints);
}
}  // namespace hodyn_ros::guard
