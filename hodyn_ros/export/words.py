"""What headers say of arrays that several functions take or give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hodyn_ros.dynamics.operations import Operation
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.lie.representations import Representation

_TWISTS: dict[Representation, str] = {
    "spatial": "in world axes at the world origin",
    "body_fixed": "in the frame's axes at its origin",
    "hybrid": "in world axes at the frame's origin",
}


def motion(order: int) -> str:
    """Say what the motion of the joints is, up to a derivative."""
    return f"q: positions{'' if order == 0 else f' and their derivatives up to order {order}'}."


def joints(name: str, of: Sequence[str], order: int) -> str:
    """Say what the motion of other joints than those of q is, up to a derivative."""
    derivatives = f" and their derivatives up to order {order}" if order else ""
    return f"{name}: positions{derivatives} of {', '.join(of)}."


def base(order: int, what: str = "base", frame: BaseRepresentation = "spatial") -> list[str]:
    """Say what the pose and the twists of a base are, up to derivative `order` of the twist."""
    pose = f"pose: homogeneous matrix of the {what} in the world, row by row [m]."
    if order < 0:
        return [pose]
    place = "in world axes at the world origin" if frame == "spatial" else "in its axes at its origin"
    rates = f", and its derivatives up to order {order}" if order else ""
    kind = "spatial" if frame == "spatial" else "body-fixed"
    return [pose, f"twists: {kind} twist of the {what} (wx wy wz vx vy vz), {place} [rad/s, m/s]{rates}."]


def twist(what: str = "base") -> list[str]:
    """Say what the pose and the twist of a base are."""
    pose, twists = base(0, what)
    return [pose, twists.replace("twists:", "twist:")]


def wrenches(request: ExportRequest) -> list[str]:
    """Say what the environment does."""
    return [
        f"{name}: wrench (mx my mz fx fy fz) of the environment on body {body}, in world axes about the "
        f"world origin [N.m, N], and its derivatives up to order {request.order}."
        for name, body in zip(request.wrench_names, request.wrenches)
    ]


def frame_motion(names: Sequence[str | int], request: ExportRequest) -> list[str]:
    """Say what forward kinematics gives."""
    listed = ", ".join(map(str, names))
    lines = [f"frame_poses: homogeneous matrices in the world, row by row [m], of {listed}."]
    if request.order:
        lines.append(
            "frame_twists: of each frame one after the other its twist (wx wy wz vx vy vz), "
            f"{_TWISTS[request.representation]} [rad/s, m/s], with derivatives up to order "
            f"{request.order - 1}."
        )
    return lines


def result(
    operation: Operation,
    request: ExportRequest,
    of: tuple[Any, ...],
    *,
    m: int = 0,
    efforts: int = 0,
    bodies: int = 0,
    coordinates: str = "q",
) -> list[str]:
    """Say what an operation gives: `of` frames by name, of m velocities, and so many efforts and bodies.

    `coordinates`: by what partial derivatives are.
    """
    if not operation.in_c:  # poses and twists of frames
        return frame_motion(of[0], request)
    order = request.order
    about = operation.about.format(
        frame=of[0] if of else "",
        twist=_TWISTS[request.representation],
        order=order,
        order_1=order + 1,
        order_2=order + 2,
        order_3=order + 3,
        m=m,
        square=m * m,
        efforts=efforts,
        efforts_m=efforts * m,
        coordinates=coordinates,
        parameters=10 * bodies,
    )
    weighted = ["multiplier: of what the sum is of, in the same order."] if operation.weighted else []
    return [*weighted, f"{operation.in_c}: {about}"]


def result_of_base(operation: Operation, request: ExportRequest) -> list[str]:
    """Say what an operation gives of a base, or what a base changes."""
    about = operation.about_base.format(order=request.order, order_1=request.order + 1)
    return [f"{operation.base_in_c}: {about}" if operation.base_in_c else about]
