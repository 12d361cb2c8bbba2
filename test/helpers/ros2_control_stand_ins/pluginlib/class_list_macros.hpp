#pragma once

#define PLUGINLIB_EXPORT_CLASS(derived, base) static_assert(std::is_base_of<base, derived>::value, "");
