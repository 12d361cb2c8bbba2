// Writes what rnea of Pinocchio computes over casadi::SX of a serial arm, as `pinocchio.casadi` does, which wheels of PyPI leave
// out: benchmarks/data/pinocchio_casadi_panda.json is made of this function by its instructions. With the headers of `pin`
// and `casadi` from site-packages, and Eigen:
//   g++ -std=c++17 pinocchio_casadi.cpp -DBOOST_MPL_LIMIT_LIST_SIZE=30 -DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS \
//     -DBOOST_FUSION_INVOKE_MAX_ARITY=12 -I cmeel.prefix/include -I /usr/include/eigen3 -I casadi/include \
//     -L casadi -L cmeel.prefix/lib -lcasadi -lpinocchio_default -o pinocchio_casadi
// It reads the number of joints, all about z, and of each its placement on the parent (rotation by rows, position), mass, centre
// of mass, and inertia about that by rows; gravity is Pinocchio's.
#include <casadi/casadi.hpp>
#include <pinocchio/autodiff/casadi.hpp>
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <iostream>
#include <string>

using casadi::SX;

template <int rows, int columns>
Eigen::Matrix<double, rows, columns> read() {
  Eigen::Matrix<double, rows, columns> values;
  for (int i = 0; i < rows * columns; ++i) std::cin >> values(i / columns, i % columns);
  return values;
}

int main() {
  pinocchio::Model model;
  int n = 0;
  std::cin >> n;
  for (int j = 0; j < n; ++j) {
    const Eigen::Matrix3d rotation = read<3, 3>();
    const Eigen::Vector3d position = read<3, 1>();
    double mass = 0.0;
    std::cin >> mass;
    const Eigen::Vector3d com = read<3, 1>();
    const Eigen::Matrix3d inertia = read<3, 3>();
    const auto joint = model.addJoint(
        j, pinocchio::JointModelRZ(), pinocchio::SE3(rotation, position), "joint" + std::to_string(j));
    model.appendBodyToJoint(joint, pinocchio::Inertia(mass, com, inertia), pinocchio::SE3::Identity());
  }
  const auto symbolic = model.cast<SX>();
  pinocchio::DataTpl<SX> data(symbolic);
  const SX motion = SX::sym("q", n, 3);
  Eigen::Matrix<SX, Eigen::Dynamic, 1> q(n), v(n), a(n);
  for (int i = 0; i < n; ++i) {
    q[i] = motion(i, 0);
    v[i] = motion(i, 1);
    a[i] = motion(i, 2);
  }
  pinocchio::rnea(symbolic, data, q, v, a);
  SX torques(n, 1);
  for (int i = 0; i < n; ++i) torques(i) = data.tau[i];
  casadi::Function("torques", {motion}, {torques}).save("torques.casadi");
}
