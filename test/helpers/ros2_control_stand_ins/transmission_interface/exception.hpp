#pragma once

#include <stdexcept>
#include <string>

namespace transmission_interface
{
class Exception : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};
}  // namespace transmission_interface
