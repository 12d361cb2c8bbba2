// The table that a shared object of `hodyn export` offers, checked. Not for the loop: it throws.

#pragma once

#include <dlfcn.h>

#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

namespace hodyn_ros
{
struct CloseLibrary
{
  void operator()(void * handle) const { dlclose(handle); }
};
using LibraryHandle = std::unique_ptr<void, CloseLibrary>;

inline LibraryHandle open_library(const std::string & path, const std::string & options)
{
  LibraryHandle handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!handle) {
    const char * said = dlerror();
    throw std::runtime_error(
      "the robot '" + path + "' cannot be loaded: " + (said == nullptr ? "" : said) +
      "; write it by 'hodyn export ROBOT " + options + "' on this kind of machine");
  }
  return handle;
}

// Call `offer` of a library and check what it is: interface, hash of the robot's file (a beginning of it; empty:
// any), self-test.
template <typename Table>
const Table * checked_table(
  void * handle, const char * offer_name, unsigned abi, const std::string & path, const std::string & hash,
  const std::string & options)
{
  const auto offer = reinterpret_cast<const Table * (*)()>(dlsym(handle, offer_name));
  if (offer == nullptr) {
    throw std::runtime_error("'" + path + "' is no robot: 'hodyn export " + options + "' has not written it");
  }
  const Table * table = offer();
  if (table->abi != abi || table->size != sizeof(Table)) {
    std::ostringstream text;
    text << "'" << path << "' was written for another version of hodyn_ros (interface " << table->abi << ", this is "
         << abi << "); export the robot again";
    throw std::runtime_error(text.str());
  }
  if (std::string(table->hash).compare(0, hash.size(), hash) != 0) {
    throw std::runtime_error(
      "'" + path + "' comes from a robot file with SHA-256 " + table->hash + ", and 'robot_hash' is " + hash +
      "; export the robot again, or correct the parameter");
  }
  const double error = table->self_test();
  if (!(error < 1e-9)) {
    std::ostringstream text;
    text << "the self-test of '" << path << "' is off by " << error
         << "; export the robot again, with the compiler of this machine";
    throw std::runtime_error(text.str());
  }
  return table;
}
}  // namespace hodyn_ros
