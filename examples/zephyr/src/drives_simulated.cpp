// Drives of a simulated robot that brakes hold where nothing is commanded. Another file takes this one's place on a robot.

#include "drives.hpp"
#include "motion.hpp"
#include "simulated_robot.hpp"

namespace drives
{
namespace
{
SimulatedRobot robot(kStart);
}

bool read(double * position, double * velocity)
{
  for (int j = 0; j < JOINTS; ++j) {
    position[j] = robot.motion[0][j];
    velocity[j] = robot.motion[1][j];
  }
  return true;
}

void write(const double * effort) { robot.move(effort, 1e-3); }
void hold() { robot.stand(); }
void off() { robot.stand(); }
}  // namespace drives
