"""Parameters of the nodes: declared from a table, each with a description and a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

from hodyn_ros.errors import InputError

Value = bool | int | float | str | list[float] | list[str]


@dataclass(frozen=True)
class Setting:
    """One parameter: its default (which gives the type), what it means with its unit, and what it may be.

    `low` and `high` bound a number, both included. `read_only` parameters are set at the start of the node
    only. An empty list as default needs `element`, `float` or `str`, since it does not say what it is a list
    of.
    """

    name: str
    default: Value
    description: str
    low: float | None = None
    high: float | None = None
    read_only: bool = False
    element: type[float] | type[str] = float

    def descriptor(self) -> ParameterDescriptor:
        """Return what `ros2 param describe` shows."""
        descriptor = ParameterDescriptor(
            name=self.name, type=self._type().value, description=self.description, read_only=self.read_only
        )
        if self.low is not None and self.high is not None:
            if isinstance(self.default, int):
                descriptor.integer_range = [
                    IntegerRange(from_value=int(self.low), to_value=int(self.high), step=0)
                ]
            else:
                low, high = float(self.low), float(self.high)
                descriptor.floating_point_range = [
                    FloatingPointRange(from_value=low, to_value=high, step=0.0)
                ]
        return descriptor

    def parameter(self) -> Parameter[Any]:
        """Return the default as a parameter with its type."""
        return Parameter(self.name, self._type(), self.default)

    def _type(self) -> Parameter.Type:
        if isinstance(self.default, list):
            return Parameter.Type.DOUBLE_ARRAY if self.element is float else Parameter.Type.STRING_ARRAY
        return Parameter.Type.from_parameter_value(self.default)


def declare(node: Node, settings: Sequence[Setting]) -> None:
    """Declare parameters on a node; raises InputError naming one whose value from outside does not fit."""
    for setting in settings:
        try:
            node.declare_parameter(
                setting.name, setting.parameter().get_parameter_value(), setting.descriptor()
            )
        except (InvalidParameterTypeException, InvalidParameterValueException) as error:
            raise InputError(f"parameter {setting.name!r}: {_why(setting, error)}") from None


def value(node: Node, name: str) -> Any:
    """Return the value of a declared parameter; arrays come as lists."""
    found = node.get_parameter(name).value
    return list(found) if isinstance(found, Sequence) and not isinstance(found, str) else found


def _why(setting: Setting, error: Exception) -> str:
    kind = setting._type().name.lower().replace("_", " ")
    expected = f"expected a value of type {kind}"
    if setting.low is not None and setting.high is not None:
        expected += f" from {setting.low:g} to {setting.high:g}"
    return f"{expected}; {error}"
