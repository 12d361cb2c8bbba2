"""Wrenches that the environment applies to bodies, as Taylor series in the axes of the bodies."""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.engine.series.body import Body
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.spatial import Spatial
from hodyn_ros.engine.series.vectors import Scalar, Vector, add, cross, halves, scale, subtract, times
from hodyn_ros.lie.motion import BaseRepresentation


class AppliedWrench:
    """A wrench on one body, extended coefficient by coefficient.

    `frame="body_fixed"`: in the user's frame of the body, which lies fixed in the engine's; `"spatial"`:
    carried outward from the world, joint by joint.
    """

    def __init__(self, body: int, frame: BaseRepresentation) -> None:
        self.body = body
        self.frame = frame
        self._wrench: list[Spatial] = []
        self._carried: dict[int, CarriedWrench] = {}

    def extend(self, bodies: Sequence[Body], base: FloatingBase | None, wrench: Sequence[Scalar]) -> Spatial:
        """Append a coefficient and return it about the origin of the body, in its axes."""
        self._wrench.append(halves(wrench))
        k = len(self._wrench) - 1
        moment, force = self._wrench[k]
        if self.frame == "spatial":
            return self._outward(bodies, base, self.body, k)
        placement = bodies[self.body].constants.body_in_frame
        moment, force = times(placement[:3, :3].tolist(), moment), times(placement[:3, :3].tolist(), force)
        return add(moment, cross(placement[:3, 3].tolist(), force)), force

    def _outward(self, bodies: Sequence[Body], base: FloatingBase | None, j: int, k: int) -> Spatial:
        body = bodies[j]
        if body.constants.joint < 0:
            assert base is not None
            moments, forces = zip(*self._wrench)
            return base.wrench_to_body(moments, forces, k)
        parent = body.constants.parent
        wrench = self._wrench[k] if parent < 0 else self._outward(bodies, base, parent, k)
        return self._carried.setdefault(j, CarriedWrench()).extend(body, wrench, k)


class CarriedWrench:
    """A wrench on its way outward through one joint, extended coefficient by coefficient."""

    def __init__(self) -> None:
        self.forces: list[Vector] = []  # before the joint, in the parent's axes
        self.turned: list[Spatial] = []  # after the present turn

    def extend(self, body: Body, wrench: Spatial, k: int) -> Spatial:
        """Append coefficient k, in the parent's axes, and return it in those of the body."""
        moment, force = wrench
        self.forces.append(force)
        moment = subtract(moment, cross(body.translation, force))
        if body.slides:
            along = [cross(body.axis, past) for past in self.forces]
            for i in range(k + 1):
                moment = subtract(moment, scale(body.slide[k - i], along[i]))
        turn = body.turn
        self.turned.append(
            (turn.inward(times(body.transposed, moment)), turn.inward(times(body.transposed, force)))
        )
        moments, forces = zip(*self.turned)
        return (
            add(moments[k], turn.inward_change(moments, k)),
            add(forces[k], turn.inward_change(forces, k)),
        )
