// What is logged is kept for tests.
#pragma once

#include <cstdio>

inline char * stand_in_log()
{
  static char text[1000];
  return text;
}
#define RCLCPP_ERROR(logger, ...) std::snprintf(stand_in_log(), 1000, __VA_ARGS__)
