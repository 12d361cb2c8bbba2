#pragma once

#include <memory>

#include "hardware_interface/hardware_info.hpp"
#include "transmission_interface/transmission.hpp"

namespace transmission_interface
{
class TransmissionLoader
{
public:
  virtual ~TransmissionLoader() = default;
  virtual std::shared_ptr<Transmission> load(const hardware_interface::TransmissionInfo & info) = 0;
};
}  // namespace transmission_interface
