"""Read recordings from CSV, Parquet and NPZ, with a map of their columns, and from bags of rosbag2."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError, ModelError, UnknownNameError
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.model.keys import Entry, key, keys_of
from hodyn_ros.model.readers.document import document_of
from hodyn_ros.model.readers.yaml_text import read_yaml

NOTHING = "-"  # in place of a column
TABLES = (".csv", ".npz", ".parquet")  # other recordings are bags
_LONGEST_LINE = 1_000_000  # characters of the heads of columns
_LONGEST_NAME = 40  # characters of a column's name, as it is shown


class CoupledMotor(Entry):
    """A motor that turns with a joint beside its own, such as those of wrists."""

    motor: str = key("joint that it drives")
    joint: str = key("joint that turns it as well")
    ratio: float = key("turns, reflected to its own joint, for each turn of the other", default=1.0)


class ColumnMap(Entry):
    """Which columns mean what: `value = scale * column + offset`, in SI units and reflected to the link side.

    Lists hold one entry for each joint of the robot; a figure may be one number for all of them.
    """

    time: str = key("column of the stamps [s]")
    time_scale: float = key("seconds for each unit of time, 1e-9 of nanoseconds", default=1.0, above=0)
    effort: tuple[str, ...] = key(f"efforts; {NOTHING} for a joint without")
    effort_scale: tuple[float, ...] = key("[N·m] for each unit, such as gear ratios", default=(1.0,))
    effort_offset: tuple[float, ...] = key("[N·m]", default=(0.0,))
    position: tuple[str, ...] = key(f"positions of links; {NOTHING} for a joint without", default=())
    position_scale: tuple[float, ...] = key("[rad] for each unit", default=(1.0,))
    position_offset: tuple[float, ...] = key("[rad]", default=(0.0,))
    motor_position: tuple[str, ...] = key(f"positions of motors; {NOTHING} for a joint without", default=())
    motor_position_scale: tuple[float, ...] = key(
        "[rad] for each unit, such as 1 / gear ratio", default=(1.0,)
    )
    motor_position_offset: tuple[float, ...] = key("[rad]", default=(0.0,))
    temperature: tuple[str, ...] = key(f"temperatures of gears; {NOTHING} for a joint without", default=())
    temperature_scale: tuple[float, ...] = key("[°C] for each unit", default=(1.0,))
    temperature_offset: tuple[float, ...] = key("[°C]", default=(0.0,))
    coupled_motors: tuple[CoupledMotor, ...] = key("motors that turn with other joints too", default=())


def require_use(recordings: Iterable[Path], columns: Path | None, topics: Sequence[str]) -> None:
    """Raise InputError for a map of columns where all recordings are bags, for topics where none is."""
    tables = {path.suffix.lower() in TABLES for path in recordings}
    if columns is not None and True not in tables:
        raise InputError(
            f"--columns {columns} is of CSV, Parquet and NPZ, and all recordings are bags; leave it out"
        )
    if topics and False not in tables:
        raise InputError(f"--topic {topics[0]} is of bags, and no recording is one; leave it out")


def read_recording(
    path: Path,
    joint_names: Sequence[str],
    columns: Path | None = None,
    at_motor: bool = True,
    topics: Sequence[str] = (),
) -> JointRecording:
    """Read a recording of a robot with these joints. Raises InputError naming file and column.

    `topics`: which to read of a bag, where several of one type have these joints.

    Without a map the columns are called `time`, then for each joint `NAME.position`, `NAME.motor_position`,
    `NAME.effort` and `NAME.temperature`; an NPZ has `time`, `position`, `motor_position` and `effort` (N, n),
    and `joint_names`.
    """
    if not path.exists():
        raise InputError(f"there is no recording '{path}'")
    kind = path.suffix.lower()
    if kind not in TABLES:
        from hodyn_ros.identification.bag import read_bag

        return read_bag(path, joint_names, at_motor, topics)
    if not path.is_file():  # a pipe may never end
        raise InputError(f"the recording '{path}' is not a regular file")
    table = {".csv": _csv, ".npz": _npz, ".parquet": _parquet}[kind](path)
    chosen = _read_map(columns) if columns is not None else _usual_map(table, joint_names)
    times = _column(path, table, chosen.time) * chosen.time_scale

    def channel(what: str) -> Channel | None:
        names: tuple[str, ...] = getattr(chosen, what)
        if not names:
            return None
        if len(names) != len(joint_names):
            raise InputError(
                f"{columns or path}: {what} has {len(names)} columns, and the robot {len(joint_names)} "
                f"joints ({list(joint_names)}); write {NOTHING} for a joint that has none"
            )
        values = np.full((len(times), len(names)), np.nan)
        for j, name in enumerate(names):
            if name != NOTHING:
                values[:, j] = _column(path, table, name, len(times))
        scale, offset = (np.array(getattr(chosen, f"{what}_{part}")) for part in ("scale", "offset"))
        for part, numbers in (("scale", scale), ("offset", offset)):
            if len(numbers) not in (1, len(names)):
                raise InputError(
                    f"{columns}: {what}_{part} needs one number, or {len(names)}, found {len(numbers)}"
                )
        return Channel(times, values * scale + offset)

    efforts = channel("effort")
    if efforts is None:
        raise InputError(f"{columns or path} names no efforts; columns are {_listed(table, 40)}")
    motors, links = channel("motor_position"), channel("position")
    shared = _transmission(chosen, joint_names)
    if shared is not None:
        to_joints = np.asarray(np.linalg.inv(shared), dtype=np.float64)
        motors, efforts = _of_joints(motors, to_joints), _of_joints(efforts, shared.T)
        assert efforts is not None
    warmth = channel("temperature")
    return JointRecording(path.name, tuple(joint_names), efforts, motors, links, at_motor, shared, warmth)


def _transmission(chosen: ColumnMap, names: Sequence[str]) -> Array | None:
    """Return velocities of motors over those of joints (n, n); None where each motor has its own joint."""
    if not chosen.coupled_motors:
        return None
    result = np.eye(len(names))
    for each in chosen.coupled_motors:
        for what in ("motor", "joint"):
            if (name := getattr(each, what)) not in names:
                raise UnknownNameError("joint of coupled_motors", name, names)
        if each.motor == each.joint:
            raise InputError(f"coupled_motors: the motor of {each.motor!r} is its own; name another joint")
        result[names.index(each.motor), names.index(each.joint)] = each.ratio
    return result


def _of_joints(channel: Channel | None, matrix: Array) -> Channel | None:
    """Return what motors do as what their joints do; nan where one that has a share is not measured."""
    if channel is None:
        return None
    known = np.nan_to_num(channel.values) @ matrix.T
    missing = np.isnan(channel.values).astype(float) @ (matrix != 0.0).T > 0.0
    return Channel(channel.times, np.where(missing, np.nan, known))


def _read_map(path: Path) -> ColumnMap:
    try:
        text = read_yaml(path)
        if isinstance(text.data, dict):
            lists = {
                name for name, one in keys_of(ColumnMap).items() if one.is_figure and one.kind is not float
            }
            listed = {name: [text.data[name]] for name in lists if isinstance(text.data.get(name), float)}
            text = replace(text, data=text.data | listed)
        return document_of(text, lambda _: ColumnMap).root
    except ModelError as error:
        raise InputError(str(error)) from error


def _usual_map(table: dict[str, Array], joint_names: Sequence[str]) -> ColumnMap:
    columns: dict[str, Any] = {}
    for what in ("effort", "position", "motor_position", "temperature"):
        names = [f"{n}.{what}" if f"{n}.{what}" in table else NOTHING for n in joint_names]
        columns[what] = tuple(names) if set(names) != {NOTHING} else ()
    if not columns["effort"]:
        raise InputError(
            f"there are no efforts called {joint_names[0]}.effort and so on; say with --columns which "
            f"columns mean what. Columns are {_listed(table, 12)}"
        )
    return ColumnMap(time="time", **columns)


def _column(path: Path, table: dict[str, Array], name: str, count: int | None = None) -> Array:
    """Return a column, with as many numbers as it has to have."""
    if name not in table:
        raise InputError(f"{path} has no column {name!r}; it has {_listed(table, 40)}")
    column = table[name]
    if count is not None and len(column) != count:
        raise InputError(f"{path} has {len(column)} numbers in column {name!r}, and {count} instants")
    return column


def _listed(table: dict[str, Array], most: int) -> str:
    """Return names of columns, which may be anything where the file is something else."""
    names = [repr(name)[1:-1] for name in list(table)[:most]]
    return ", ".join(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..." for name in names)


def _unreadable(path: Path, what: str, error: Exception) -> InputError:
    return InputError(f"{path} is no {what}: {' '.join(str(error).split()) or type(error).__name__}")


def _csv(path: Path) -> dict[str, Array]:
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline(_LONGEST_LINE)
        if len(first) == _LONGEST_LINE:  # all of it may be one line, which NumPy would take as a whole
            raise ValueError(f"the first line has {_LONGEST_LINE} characters and more")
        heads = [head.strip() for head in first.strip().lstrip("#").split(",")]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # which says that there is nothing
            values = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2, encoding="utf-8")
    except ValueError as error:
        raise _unreadable(path, "table of numbers under one line of heads", error) from None
    if not values.size:
        raise InputError(f"{path} holds no numbers under its first line")
    if values.shape[1] != len(heads):
        raise InputError(f"{path} has {len(heads)} heads over {values.shape[1]} columns")
    return dict(zip(heads, values.T))


def _parquet(path: Path) -> dict[str, Array]:
    """Read the columns that are numbers, those that are instants as seconds. Needs pyarrow."""
    import pyarrow.parquet  # only in the extra `parquet`
    from pyarrow import ArrowException, compute, float64, int64, timestamp, types

    columns: dict[str, Array] = {}
    try:
        table = pyarrow.parquet.read_table(path)
        for name in table.column_names:
            column = table[name]
            if types.is_timestamp(column.type):
                nanoseconds = compute.cast(compute.cast(column, timestamp("ns")), int64()).to_numpy()
                columns[name] = 1e-9 * (nanoseconds - nanoseconds[0])  # or doubles would cut them
            elif types.is_integer(column.type) or types.is_floating(column.type):
                numbers = compute.cast(column, float64(), safe=False).to_numpy()
                columns[name] = np.asarray(numbers, dtype=np.float64)
    except (OSError, ValueError, IndexError, ArrowException) as error:  # IndexError: no row
        raise _unreadable(path, "Parquet file", error) from None
    return columns


def _npz(path: Path) -> dict[str, Array]:
    table: dict[str, Array] = {}
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            data = {key: archive[key] for key in archive.files}
        names = [str(name) for name in np.ravel(data.pop("joint_names", []))]
        for what, values in data.items():
            if values.ndim == 2:
                count = values.shape[1]
                labels = names if len(names) == count else list(map(str, range(count)))
                columns = np.asarray(values, dtype=np.float64).T
                table |= {f"{name}.{what}": column for name, column in zip(labels, columns)}
            elif values.ndim == 1:
                table[what] = np.asarray(values, dtype=np.float64)
    except Exception as error:  # zipfile, zlib and NumPy have errors of their own for what is damaged
        raise _unreadable(path, "NPZ archive of plain arrays", error) from None
    return table
