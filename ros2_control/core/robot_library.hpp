// The shared object of a robot, which `hodyn export --shared` has written. Not for the loop: it throws.

#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "robot_table.h"

namespace hodyn_ros
{
class RobotLibrary
{
public:
  // Load it and check what it is: interface, hash of the robot's file (a beginning of it; empty: any), self-test.
  RobotLibrary(const std::string & path, const std::string & hash) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
  {
    if (!handle_) {
      const char * said = dlerror();
      throw std::runtime_error(
        "the robot '" + path + "' cannot be loaded: " + (said == nullptr ? "" : said) +
        "; write it by 'hodyn export --robot ... --shared' on this kind of machine");
    }
    const auto offer = reinterpret_cast<const hodyn_robot * (*)()>(dlsym(handle_.get(), "hodyn_robot_table"));
    if (offer == nullptr) {
      throw std::runtime_error("'" + path + "' is no robot: 'hodyn export --shared' has not written it");
    }
    table_ = offer();
    if (table_->abi != HODYN_ROBOT_ABI || table_->size != sizeof(hodyn_robot)) {
      std::ostringstream text;
      text << "'" << path << "' was written for another version of hodyn_ros (interface " << table_->abi
           << ", this is " << HODYN_ROBOT_ABI << "); export the robot again";
      throw std::runtime_error(text.str());
    }
    if (std::string(table_->hash).compare(0, hash.size(), hash) != 0) {
      throw std::runtime_error(
        "'" + path + "' comes from a robot file with SHA-256 " + table_->hash + ", and 'robot_hash' is " + hash +
        "; export the robot again, or correct the parameter");
    }
    const double error = table_->self_test();
    if (!(error < 1e-9)) {
      std::ostringstream text;
      text << "the self-test of '" << path << "' is off by " << error
           << "; export the robot again, with the compiler of this machine";
      throw std::runtime_error(text.str());
    }
  }

  const hodyn_robot & table() const { return *table_; }

  std::vector<std::string> joint_names() const { return {table_->joint_names, table_->joint_names + table_->joints}; }

  std::vector<std::string> coordinate_names() const
  {
    return {table_->coordinate_names, table_->coordinate_names + table_->coordinates};
  }

private:
  struct Close
  {
    void operator()(void * handle) const { dlclose(handle); }
  };
  std::unique_ptr<void, Close> handle_;
  const hodyn_robot * table_ = nullptr;
};
}  // namespace hodyn_ros
