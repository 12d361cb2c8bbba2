// A linkage between actuators and joints, exact in positions and velocities, for real-time loops: nothing but the
// constructor allocates or throws.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/shared_table.hpp"
#include "linkage_table.h"

namespace hodyn_ros
{
// By J of the last positions, which takes velocities of joints to those of actuators; J^T takes efforts back. Both
// ways by the same J, so that power is the same on either side.
class Linkage
{
public:
  // Load what `hodyn export --lang linkage --shared` has written; `hash`: as of checked_table.
  explicit Linkage(const std::string & path, const std::string & hash = "")
  : handle_(open_library(path, kOptions)),
    table_(checked_table<hodyn_linkage>(
      handle_.get(), "hodyn_linkage_table", HODYN_LINKAGE_ABI, path, hash, kOptions)),
    n_(table_->joints),
    memory_(table_->memory),
    way_(n_),
    found_(n_),
    jacobian_(n_ * n_),
    staged_(n_ * n_),
    factors_(n_ * n_),
    staged_factors_(n_ * n_),
    rows_(n_),
    staged_rows_(n_),
    right_(n_)
  {
    table_->home(memory_.data());
    to_actuators(table_->home_joints, found_.data());  // J at home, until there are positions
    at_home_ = true;
  }

  std::size_t size() const { return n_; }
  std::vector<std::string> joint_names() const { return {table_->joint_names, table_->joint_names + n_}; }
  std::vector<std::string> actuator_names() const { return {table_->actuator_names, table_->actuator_names + n_}; }

  // Positions of the joints from those of the actuators, and J there. False where the linkage cannot be there, is
  // singular, or has moved by more than half a radian at once; positions and J are then as they were. The first call
  // is led from home in short steps.
  bool to_joints(const double * actuators, double * joints)
  {
    return moved(table_->to_joints, table_->home_actuators, actuators, joints);
  }

  // Likewise positions of the actuators from those of the joints.
  bool to_actuators(const double * joints, double * actuators)
  {
    return moved(table_->to_actuators, table_->home_joints, joints, actuators);
  }

  // Results may stand where arguments do.
  void joint_velocities(const double * actuators, double * joints) { solve(actuators, joints); }
  void actuator_velocities(const double * joints, double * actuators) { multiply(joints, actuators, n_, 1); }
  void joint_efforts(const double * actuators, double * joints) { multiply(actuators, joints, 1, n_); }
  void actuator_efforts(const double * joints, double * actuators) { solve_transposed(joints, actuators); }

  // J by rows of actuators.
  const double * jacobian() const { return jacobian_.data(); }

  // What inertias of the actuators are at the joints, J^T I J by rows: those of the robot's file where `inertia` is
  // null. False where that has none.
  bool effective_inertia(double * matrix, const double * inertia = nullptr) const
  {
    inertia = inertia == nullptr ? table_->inertia : inertia;
    for (std::size_t i = 0; inertia != nullptr && i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) {
        double & sum = matrix[i * n_ + j] = 0.0;
        for (std::size_t k = 0; k < n_; ++k) {
          sum += jacobian_[k * n_ + i] * inertia[k] * jacobian_[k * n_ + j];
        }
      }
    }
    return inertia != nullptr;
  }

private:
  using Map = int (*)(void *, const double *, double *, double *);
  static constexpr const char * kOptions = "--lang linkage --shared";
  static constexpr int kSteps = 64;

  bool moved(Map map, const double * home, const double * from, double * to)
  {
    for (int step = at_home_ ? 1 : kSteps; step <= kSteps; ++step) {
      const double share = static_cast<double>(step) / kSteps;
      for (std::size_t i = 0; i < n_; ++i) {
        way_[i] = step == kSteps ? from[i] : home[i] + share * (from[i] - home[i]);
      }
      if (map(memory_.data(), way_.data(), found_.data(), staged_.data()) == HODYN_LINKAGE_FAILED || !factorised()) {
        if (at_home_) {
          table_->home(memory_.data());
        }
        return false;
      }
    }
    at_home_ = false;
    jacobian_.swap(staged_);
    factors_.swap(staged_factors_);
    rows_.swap(staged_rows_);
    std::copy(found_.begin(), found_.end(), to);
    return true;
  }

  // Gauss with the largest pivots: J in two triangles, rows in another order. False where J is singular.
  bool factorised()
  {
    std::vector<double> & a = staged_factors_;
    std::copy(staged_.begin(), staged_.end(), a.begin());
    double largest = 0.0;
    for (std::size_t i = 0; i < n_; ++i) {
      staged_rows_[i] = i;
    }
    for (const double entry : a) {
      largest = std::max(largest, std::abs(entry));
    }
    for (std::size_t k = 0; k < n_; ++k) {
      std::size_t pivot = k;
      for (std::size_t i = k + 1; i < n_; ++i) {
        pivot = std::abs(a[i * n_ + k]) > std::abs(a[pivot * n_ + k]) ? i : pivot;
      }
      if (!(std::abs(a[pivot * n_ + k]) > kSingular * largest)) {
        return false;
      }
      std::swap(staged_rows_[k], staged_rows_[pivot]);
      std::swap_ranges(&a[k * n_], &a[k * n_] + n_, &a[pivot * n_]);
      for (std::size_t i = k + 1; i < n_; ++i) {
        const double factor = a[i * n_ + k] /= a[k * n_ + k];
        for (std::size_t j = k + 1; j < n_; ++j) {
          a[i * n_ + j] -= factor * a[k * n_ + j];
        }
      }
    }
    return true;
  }

  void solve(const double * b, double * x)
  {
    for (std::size_t i = 0; i < n_; ++i) {
      right_[i] = b[rows_[i]];
      for (std::size_t j = 0; j < i; ++j) {
        right_[i] -= factors_[i * n_ + j] * right_[j];
      }
    }
    for (std::size_t i = n_; i-- > 0;) {
      for (std::size_t j = i + 1; j < n_; ++j) {
        right_[i] -= factors_[i * n_ + j] * right_[j];
      }
      right_[i] /= factors_[i * n_ + i];
    }
    std::copy(right_.begin(), right_.end(), x);
  }

  void solve_transposed(const double * b, double * x)
  {
    for (std::size_t i = 0; i < n_; ++i) {
      right_[i] = b[i];
      for (std::size_t j = 0; j < i; ++j) {
        right_[i] -= factors_[j * n_ + i] * right_[j];
      }
      right_[i] /= factors_[i * n_ + i];
    }
    for (std::size_t i = n_; i-- > 0;) {
      for (std::size_t j = i + 1; j < n_; ++j) {
        right_[i] -= factors_[j * n_ + i] * right_[j];
      }
    }
    for (std::size_t i = 0; i < n_; ++i) {
      x[rows_[i]] = right_[i];
    }
  }

  void multiply(const double * x, double * product, std::size_t row, std::size_t column)
  {
    for (std::size_t i = 0; i < n_; ++i) {
      right_[i] = 0.0;
      for (std::size_t j = 0; j < n_; ++j) {
        right_[i] += jacobian_[i * row + j * column] * x[j];
      }
    }
    std::copy(right_.begin(), right_.end(), product);
  }

  static constexpr double kSingular = 1e-9;  // share of the largest entry that no pivot has, where J is singular

  LibraryHandle handle_;
  const hodyn_linkage * table_;
  std::size_t n_;
  std::vector<unsigned char> memory_;
  bool at_home_ = true;
  std::vector<double> way_, found_, jacobian_, staged_, factors_, staged_factors_;
  std::vector<std::size_t> rows_, staged_rows_;
  std::vector<double> right_;
};
}  // namespace hodyn_ros
