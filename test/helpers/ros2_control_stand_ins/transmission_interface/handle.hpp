// As much of ros2_control's as tests of transmissions need: names and signatures alone are theirs.
#pragma once

#include <string>

namespace transmission_interface
{
class Handle
{
public:
  Handle(const std::string & prefix, const std::string & interface, double * value = nullptr)
  : prefix_(prefix), interface_(interface), value_(value)
  {
  }
  operator bool() const { return value_ != nullptr; }
  const std::string & get_prefix_name() const { return prefix_; }
  const std::string & get_interface_name() const { return interface_; }
  double get_value() const { return *value_; }
  void set_value(double value) { *value_ = value; }

private:
  std::string prefix_, interface_;
  double * value_;
};
class ActuatorHandle : public Handle
{
public:
  using Handle::Handle;
};
class JointHandle : public Handle
{
public:
  using Handle::Handle;
};
}  // namespace transmission_interface
