"""MJCF that asks for more than any computer has, or holds NaN: one clear error, before MuJoCo begins."""

import time
from functools import partial
from pathlib import Path

import pytest
from refusals import refused

from hodyn_ros import Robot
from hodyn_ros.errors import ModelError
from hodyn_ros.model.readers.mjcf_file import MOST_COPIES, check_sizes, compile_mjcf

ARM = '<body name="a"><joint name="j"/><geom size="0.1"/><site name="s"/></body>'
FIELD = '<hfield name="h" nrow="{}" ncol="{}" size="1 1 1 1"/>'
TWO = '<body name="b"><joint name="k"/><geom size="0.1"/></body>'


def mjcf(world: str = ARM, others: str = "") -> str:
    return f"<mujoco>{others}<worldbody>{world}</worldbody></mujoco>"


def copies(count: str, inside: str = ARM) -> str:
    return f'<replicate count="{count}" offset="0 0 1">{inside}</replicate>'


HUGE = {
    "hfield": mjcf(others=f"<asset>{FIELD.format(1_000_000, 1_000_000)}</asset>"),
    "texture": mjcf(others='<asset><texture type="2d" builtin="flat" width="99999" height="99999"/></asset>'),
    "user": mjcf(others='<sensor><user dim="2000000000"/></sensor>'),
    "replicate": mjcf(copies("1e9")),
    "replicate of one": mjcf(copies("1000000000")),
    "replicate of replicates": mjcf(copies("1000", copies("1000", copies("1000")))),
    "replicate of nothing": mjcf(f'<replicate count="1000000000"/>{ARM}'),
    "replicate beside a quoted comment": mjcf(f'<body name="<!--"/>{copies("1000000000")}<body name="-->"/>'),
    "composite": mjcf('<composite type="cable" count="99999999 1 1" size="1" prefix="c"/>'),
    "flexcomp": mjcf('<flexcomp type="grid" count="9999 9999 9999" spacing=".1 .1 .1" name="f"/>'),
    "size": mjcf(others='<size nkey="200000000"/>'),
}


@pytest.mark.parametrize("case", HUGE)
def test_what_is_too_much_is_said_to_be(case: str) -> None:
    start = time.perf_counter()
    with pytest.raises(ModelError, match=f"MJCF: .*<{case.split()[0]}>.*the most there may be") as refused:
        Robot.from_mjcf(HUGE[case])
    assert time.perf_counter() - start < 5.0 and "\n" not in str(refused.value)


def test_files_that_are_included_count(tmp_path: Path) -> None:
    (tmp_path / "many.xml").write_text(f"<mujocoinclude>{copies('1000000000')}</mujocoinclude>")
    (tmp_path / "fields.xml").write_text(f"<mujocoinclude>{FIELD.format(9999, 9999)}</mujocoinclude>")
    for world, others, tag in (
        ('<include file="many.xml"/>', "", "replicate"),
        (ARM, '<asset><include file="fields.xml"/></asset>', "hfield"),
    ):
        path = tmp_path / "robot.xml"
        path.write_text(mjcf(world, others))
        refused(partial(Robot.from_mjcf, path), f"robot.xml: ... <{tag}>", ModelError)


def test_what_is_usual_passes() -> None:
    asset = f"<asset>{FIELD.format(200, 200)}</asset>"
    bodies = copies("20", copies("2", '<body pos="1 0 0"><joint/><geom size="0.1"/></body>'))
    comment = f"<!-- {copies('1000000000')} -->"
    sizes = '<size nkey="3" memory="10M" nuser_body="40" nuser_jnt="40" nuser_geom="40"/>'
    model, _ = compile_mjcf(mjcf(bodies + comment, asset + sizes))
    assert (model.nbody, model.nhfielddata) == (41, 40_000)


def test_the_time_it_takes_grows_with_the_text() -> None:
    """Texts on which a search with alternatives would go back and forth for ever."""
    for piece in ("<", "<!--", "<a ", '<a b="', "<a b='<a c=\"", '<a b="1" c', "<a b = ", "<![CDATA["):
        start = time.perf_counter()
        check_sizes("<mujoco>" + piece * (100_000 // len(piece)), Path())
        assert time.perf_counter() - start < 10.0


def test_as_many_copies_as_there_may_be_are_counted() -> None:
    check_sizes(mjcf(copies(str(MOST_COPIES // 5))), Path())  # itself, body, joint, geom and site
    with pytest.raises(ModelError):
        check_sizes(mjcf(copies(str(MOST_COPIES // 5 + 1))), Path())


@pytest.mark.parametrize(
    "text",
    [
        mjcf('<body><joint/><geom size="0.1" mass="nan"/></body>'),  # MuJoCo takes the density then
        mjcf('<body><joint/><inertial pos="NaN 0 0" mass="1" diaginertia="1 1 1"/></body>'),
        mjcf('<body quat="nan 0 1 0"><joint/><geom size="0.1"/></body>'),
        mjcf(ARM.replace('"s"', '"s" pos="0 nan 0"')),
        mjcf(ARM.replace('"j"', '"j" damping="nan"')),
        mjcf(ARM + TWO, '<equality><joint joint1="j" joint2="k" polycoef="nan 1 0 0 0"/></equality>'),
    ],
)
def test_no_robot_is_made_of_nan(text: str) -> None:
    """MuJoCo compiles all of these."""
    refused(lambda: Robot.from_mjcf(text), "MJCF: one of its numbers is NaN", ModelError)
