// Second partial derivatives of inverse dynamics as Pinocchio computes them in C++; the wheel's Python does not offer them.
// pinocchio_second_order.py compiles and calls this.
#include <pinocchio/algorithm/rnea-second-order-derivatives.hpp>
#include <pinocchio/multibody.hpp>
#include <memory>
#include <string>

namespace {

struct Arm {
  pinocchio::Model model;
  std::unique_ptr<pinocchio::Data> data;
} arm;

using Rows = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;

}  // namespace

// A serial arm, all joints about z. Of each joint: its placement on the parent (rotation by rows, position), mass, centre of
// mass, and inertia about that by rows.
extern "C" void build(int n, const double* figures, const double* gravity) {
  arm.model = pinocchio::Model();
  arm.model.gravity.linear() = Eigen::Map<const Eigen::Vector3d>(gravity);
  for (int j = 0; j < n; ++j, figures += 25) {
    const pinocchio::SE3 placement(Eigen::Map<const Rows>(figures), Eigen::Map<const Eigen::Vector3d>(figures + 9));
    const pinocchio::Inertia inertia(
        figures[12], Eigen::Map<const Eigen::Vector3d>(figures + 13), Eigen::Map<const Rows>(figures + 16));
    const auto joint = arm.model.addJoint(j, pinocchio::JointModelRZ(), placement, "joint" + std::to_string(j));
    arm.model.appendBodyToJoint(joint, inertia, pinocchio::SE3::Identity());
  }
  arm.data = std::make_unique<pinocchio::Data>(arm.model);
}

// q holds positions, velocities and accelerations by rows. What is found stays where Pinocchio leaves it: copying is not timed.
extern "C" void second_partials(const double* q, double*) {
  const int n = arm.model.nv;
  using Vector = Eigen::Map<const Eigen::VectorXd>;
  pinocchio::ComputeRNEASecondOrderDerivatives(arm.model, *arm.data, Vector(q, n), Vector(q + n, n), Vector(q + 2 * n, n));
}

// By positions twice, velocities twice, positions and velocities, accelerations and positions; each (n, n, n), first index first.
extern "C" void found(double* out) {
  const auto& data = *arm.data;
  for (const auto* part : {&data.d2tau_dqdq, &data.d2tau_dvdv, &data.d2tau_dqdv, &data.d2tau_dadq}) {
    std::copy(part->data(), part->data() + part->size(), out);
    out += part->size();
  }
}
