"""The reference of the nodes and their parameters, from their SETTINGS and docstrings."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator, Sequence
from types import ModuleType

from hodyn_ros.ros.parameters.parameters import ParameterSpec
from hodyn_ros.ros.realtime import REALTIME_SETTINGS
from reference.stand_ins import stand_ins
from reference.tables import code, plain, prose, table

_OPTIONAL = ("control_msgs",)  # not on PyPI


def nodes() -> Iterator[ModuleType]:
    """Yield the modules of the nodes: those with parameters and a main."""
    package = importlib.import_module("hodyn_ros.nodes")
    missing = [name for name in _OPTIONAL if importlib.util.find_spec(name) is None]
    for info in pkgutil.iter_modules(package.__path__, "hodyn_ros.nodes."):
        with stand_ins(*missing):
            module = importlib.import_module(info.name)
        if hasattr(module, "SETTINGS") and hasattr(module, "main"):
            yield module


def parameter_page() -> str:
    """Return the page on all nodes."""
    parts = [
        "# Nodes and parameters",
        "Generated from the nodes. A *live* parameter may be set while the node runs, with `ros2 param set`; "
        "the others are read once, when it starts. Every node also takes `use_sim_time`, `qos_overrides` of "
        "its topics, and `diagnostic_updater.period`, the time between two of its reports on /diagnostics "
        "[s], from 0.02 to 1, by default 1; and",
        _table(REALTIME_SETTINGS),
    ]
    for module in nodes():
        title, _, text = (module.__doc__ or "").partition("\n\n")
        parts += [
            f"## {title.partition(':')[0]}",
            prose(title),
            prose(text.strip()),
            _table(module.SETTINGS),
        ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _table(settings: Sequence[ParameterSpec]) -> str:
    rows = []
    for setting in settings:
        bounds = "" if setting.within is None else "{:g} … {:g}".format(*setting.within)
        default = f'"{setting.default}"' if isinstance(setting.default, str) else setting.default
        kind = setting.type.name.lower().replace("_", " ")
        live = "live" if setting.live else ""
        rows.append([code(setting.name), kind, code(default), bounds, live, plain(setting.description)])
    return table(["parameter", "type", "default", "range", "set", "meaning"], rows)
