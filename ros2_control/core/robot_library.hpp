// The shared object of a robot, which `hodyn export --shared` has written. Not for the loop: it throws.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/shared_table.hpp"
#include "robot_table.h"

namespace hodyn_ros
{
class RobotLibrary
{
public:
  // Load it and check what it is, as checked_table says.
  RobotLibrary(const std::string & path, const std::string & hash)
  : handle_(open_library(path, "--shared")),
    table_(checked_table<hodyn_robot>(
      handle_.get(), "hodyn_robot_table", HODYN_ROBOT_ABI, path, hash, "--shared"))
  {
  }

  const hodyn_robot & table() const { return *table_; }

  std::vector<std::string> joint_names() const { return {table_->joint_names, table_->joint_names + table_->joints}; }

  std::vector<std::string> coordinate_names() const
  {
    return {table_->coordinate_names, table_->coordinate_names + table_->coordinates};
  }

private:
  LibraryHandle handle_;
  const hodyn_robot * table_;
};
}  // namespace hodyn_ros
