"""Parameters of the nodes: declared from a table, each with a description and a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

from hodyn_ros.errors import InputError
from hodyn_ros.model.keys import said_of

_Config = TypeVar("_Config")
_NOTHING: Mapping[str, Any] = MappingProxyType({})

Value = bool | int | float | str | list[float] | list[str]


@dataclass(frozen=True)
class ParameterSpec:
    """One parameter: its default (which gives the type), what it means with its unit, and what it may be.

    A number lies `within` two, both included. Only a `live` one may be set while the node runs. The default
    of a list is the empty one, meaning "not given", of numbers or, with `element=str`, of texts.
    """

    default: Value
    description: str
    within: tuple[float, float] | None = None
    live: bool = False
    element: type[float] | type[str] = float
    name: str = ""

    @property
    def type(self) -> Parameter.Type:
        """The type that ROS has for the values."""
        if isinstance(self.default, list):
            return Parameter.Type.DOUBLE_ARRAY if self.element is float else Parameter.Type.STRING_ARRAY
        return Parameter.Type.from_parameter_value(self.default)

    def descriptor(self) -> ParameterDescriptor:
        """Return what `ros2 param describe` shows."""
        descriptor = ParameterDescriptor(
            name=self.name,
            type=self.type.value,
            description=self.description,
            read_only=not self.live,
            # an empty list says nothing about its type, so rclpy would never let a list be emptied again
            dynamic_typing=isinstance(self.default, list),
        )
        if self.within is not None and isinstance(self.default, int):
            low, high = map(int, self.within)
            descriptor.integer_range = [IntegerRange(from_value=low, to_value=high, step=0)]
        elif self.within is not None:
            least, most = map(float, self.within)
            descriptor.floating_point_range = [FloatingPointRange(from_value=least, to_value=most, step=0.0)]
        return descriptor

    def fits(self, parameter: Parameter[Any]) -> bool:
        """Say whether a list may be the value of this parameter; rclpy looks after all others."""
        if not isinstance(self.default, list) or parameter.type_ == Parameter.Type.NOT_SET:
            return True
        empty = parameter.type_.name.endswith("_ARRAY") and not len(parameter.value)
        whole = self.element is float and parameter.type_ == Parameter.Type.INTEGER_ARRAY
        return empty or whole or parameter.type_ == self.type

    def takes(self) -> str:
        """Return in words what values are taken."""
        kind = self.type.name.lower().replace("_", " ")
        return kind if self.within is None else f"{kind} from {self.within[0]:g} to {self.within[1]:g}"


def parameters(prefix: str = "", /, **specs: ParameterSpec) -> tuple[ParameterSpec, ...]:
    """Return parameters by their names, which begin with a prefix."""
    return tuple(replace(spec, name=prefix + name) for name, spec in specs.items())


def live_parameters(**specs: ParameterSpec) -> tuple[ParameterSpec, ...]:
    """Return parameters by their names, all of which may be set while the node runs."""
    return tuple(replace(spec, live=True) for spec in parameters(**specs))


def specs_of(config: type[Any], *, live: bool = False, **defaults: Any) -> tuple[ParameterSpec, ...]:
    """Return a parameter for each described field of a dataclass, with its default or that of `defaults`."""
    specs = []
    for entry in fields(config):
        said = said_of(entry)
        default: Any = defaults.get(entry.name, entry.default)
        if "description" in said:
            value = list(default) if isinstance(default, tuple) else default
            element = str if str(entry.type) == "tuple[str, ...]" else float
            within = (said["minimum"], said["maximum"]) if "maximum" in said else None
            specs.append(ParameterSpec(value, said["description"], within, live, element, entry.name))
    return tuple(specs)


def config_of(
    node: Node, config: type[_Config], changed: Mapping[str, Any] = _NOTHING, prefix: str = "", **fixed: Any
) -> _Config:
    """Return a dataclass as the parameters of a node say, which `specs_of` has made of its fields.

    `changed`: values in place of those that the node holds; `prefix`: before the names of its parameters;
    `others`: fields that are no parameters. Raises what the dataclass raises.
    """
    names = {spec.name: prefix + spec.name for spec in specs_of(config)}
    held = {
        field: changed.get(name, value(node, name))
        for field, name in names.items()
        if node.has_parameter(name)
    }
    # a list that is not set is None in a change
    return config(**{field: () if one is None else one for field, one in held.items()}, **fixed)


def declare(node: Node, settings: Sequence[ParameterSpec]) -> None:
    """Declare parameters on a node; raises InputError naming one whose value from outside does not fit."""
    by_name = {setting.name: setting for setting in settings}

    def check(parameters: Sequence[Parameter[Any]]) -> SetParametersResult:
        for parameter in parameters:
            setting = by_name.get(parameter.name)
            if setting is not None and not setting.fits(parameter):
                reason = f"parameter {setting.name!r} takes {setting.takes()}, not {parameter.value!r}"
                return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(check)
    for setting in settings:
        is_list = isinstance(setting.default, list)
        # `ros2 param dump` writes null for a list that is not set, which comes back as a text
        unset = is_list and _override(node, setting.name) == "null"
        default = None if is_list else setting.default
        try:
            node.declare_parameter(setting.name, default, setting.descriptor(), ignore_override=unset)
        except (InvalidParameterTypeException, InvalidParameterValueException) as error:
            reason = str(error).removesuffix(f": {setting.name}")
            raise InputError(f"parameter {setting.name!r} takes {setting.takes()}. {reason}") from None


def _override(node: Node, name: str) -> Any:
    """Return the value of a parameter from outside, None where there is none; rclpy has no public name."""
    return node._parameter_overrides[name].value if name in node._parameter_overrides else None


def warn_of_unknown_parameters(node: Node) -> None:
    """Log the parameters from outside that a node, complete by now, has not declared: a typo, most likely."""
    declared = list(node.get_parameters_by_prefix(""))
    for name in node._parameter_overrides:
        # those of QoS are declared with their topic, which may come later
        if name not in declared and not name.startswith("qos_overrides."):
            near = get_close_matches(name, declared, 1)
            advice = f"did you mean {near[0]!r}?" if near else "`ros2 param list` shows what there is"
            node.get_logger().warning(f"parameter {name!r} is unknown, and ignored; {advice}")


def choice(node: Node, name: str, choices: Sequence[str]) -> str:
    """Return the value of a parameter that takes some texts only; InputError where it is another one."""
    chosen: str = value(node, name)
    if chosen not in choices:
        raise InputError(f"parameter {name!r} is {chosen!r}; choose one of {', '.join(choices)}")
    return chosen


def value(node: Node, name: str) -> Any:
    """Return the value of a declared parameter; arrays come as lists, empty where not set."""
    held = node.get_parameter_or(name).value
    if held is None:
        return []
    return list(held) if isinstance(held, Sequence) and not isinstance(held, str) else held
