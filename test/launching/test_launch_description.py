"""What launch files start, as data; without launch, and without starting anything."""

from functools import partial
from pathlib import Path

import pytest
from refusals import refused

from hodyn_ros import share
from hodyn_ros.errors import InputError
from hodyn_ros.launching import Argument, Launch, Node, parts, read_launch
from hodyn_ros.launching.description import joined
from hodyn_ros.launching.processes import ending

FILES = [name for name in share.available("launch") if name.endswith(".launch.py")]


def nodes(file: str, **given: str) -> dict[str, Node]:
    """Return the nodes of a launch file by their full names."""
    started = [each for each in read_launch(file).start(given) if isinstance(each, Node)]
    found = {f"{each.namespace.rstrip('/')}/{each.name or each.executable}": each for each in started}
    assert len(found) == len(started)
    return found


def values(node: Node) -> dict[str, object]:
    return {k: v for each in node.parameters if not isinstance(each, Path) for k, v in each.items()}


@pytest.mark.parametrize("file", FILES)
def test_defaults_are_taken_and_described(file: str) -> None:
    launch = read_launch(file)
    taken = launch.values({})
    assert len(taken) == len(launch.arguments)
    for argument in launch.arguments:
        assert type(taken[argument.name]) is type(argument.default)
        assert len(argument.description) > 20
    wanted = {"robot_config", "namespace", "use_sim_time", "log_level", "params_file", "respawn"}
    if file != "panda_trajectory_filter.launch.py":  # to which others send the motion
        wanted |= {"trajectory", "order", "rate", "record", "bag", "rviz"}
    assert wanted <= set(taken)


@pytest.mark.parametrize(
    ("given", "value"), [({"rate": "200"}, 200.0), ({"order": "4"}, 4), ({"record": "true"}, True)]
)
def test_values_have_the_type_of_the_default(given: dict[str, str], value: object) -> None:
    ((name, _),) = given.items()
    taken = read_launch("panda.launch.py").values(given)[name]
    assert taken == value and type(taken) is type(value)


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("rate", "abc", "give a number from 6 to 2000"),
        ("rate", "nan", "give a number from 6 to 2000"),
        ("order", "2.0", "give a whole number from 0 to 6"),
        ("record", "True", "give one of true, false"),
        ("feedforward", "soft", "give one of none, rigid, offset, elastic"),
    ],
)
def test_a_value_that_is_not_taken_is_named_with_those_that_are(name: str, given: str, wanted: str) -> None:
    with pytest.raises(InputError, match=f"^argument '{name}' is '{given}'; {wanted}$"):
        read_launch("panda.launch.py").values({name: given})


def test_numeric_arguments_have_the_ranges_of_the_parameters() -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
    from hodyn_ros.nodes import trajectory_node
    from hodyn_ros.ros.parameters import dynamics_settings

    settings = {each.name: each for each in (*trajectory_node.SETTINGS, *dynamics_settings.SETTINGS)}
    arguments = {each.name: each for each in read_launch("gough_stewart.launch.py").arguments}
    for name in ("duration", "rate", "order"):
        assert (arguments[name].low, arguments[name].high) == settings[name].within


def test_an_unknown_argument_is_named() -> None:
    refused(lambda: read_launch("panda.launch.py").values({"speed": "1"}), "'speed'; there are: robot_con")


@pytest.mark.parametrize(
    ("outer", "inner", "whole"),
    [("/", "", "/"), ("/", "a/b/", "/a/b"), ("/cell", "a", "/cell/a"), ("cell", "/a", "/a"), ("", "/", "/")],
)
def test_namespaces_lie_in_one_another(outer: str, inner: str, whole: str) -> None:
    assert joined(outer, inner) == whole


def test_a_panda_gets_what_its_arguments_say() -> None:
    found = nodes("panda.launch.py", rate="200", order="3", namespace="cell", log_level="warn")
    assert list(found) == [
        f"/cell/{name}" for name in ("dynamics_node", "controller_node", "simulator_node", "trajectory_node")
    ]
    assert all(node.log_level == "warn" and node.required and not node.respawn for node in found.values())
    assert values(found["/cell/trajectory_node"])["order"] == 5
    assert values(found["/cell/dynamics_node"])["order"] == 3
    assert values(found["/cell/trajectory_node"])["rate"] == 200.0
    assert values(found["/cell/simulator_node"])["rate"] == 500.0
    # a command acts for one period after its way to the robot
    assert values(found["/cell/controller_node"])["lead"] == pytest.approx(2e-4 + 0.5 / 500.0)


def test_learning_stands_in_front_of_the_guard() -> None:
    found = nodes("panda.launch.py", learn="true", trajectory="panda_repetition.yaml")
    assert found["/controller_node"].remappings == {"feedforward_torque": "corrected_feedforward_torque"}
    assert values(found["/trajectory_node"])["repeat_after"] > 1.0
    assert values(found["/learning_node"])["trajectory"] == "panda_repetition.yaml"
    assert found["/learning_node"].required and not found["/learning_node"].respawn
    assert not nodes("panda.launch.py")["/controller_node"].remappings


def test_nodes_have_enclaves_of_their_own_names() -> None:
    found = nodes("panda.launch.py", namespace="cell", enclave="true")
    for name, node in found.items():
        assert node.arguments == ("--ros-args", "--enclave", name)
    assert not any(node.arguments for node in nodes("panda.launch.py").values())


def test_a_stream_takes_the_place_of_a_trajectory() -> None:
    found = nodes("panda.launch.py", stream="true", rate="100")
    assert "/trajectory_node" not in found
    assert values(found["/stream_node"]) | {"order": 4, "rate": 100.0} == values(found["/stream_node"])


def test_without_a_trajectory_the_dynamics_wait_for_somebody_else() -> None:
    assert list(nodes("gough_stewart.launch.py", trajectory="none")) == ["/dynamics_node"]


def test_rviz_that_is_not_there_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "installed", lambda package: False)
    words = "rviz:=true needs rviz2, which is not installed; install it, or leave out"
    refused(lambda: nodes("gough_stewart.launch.py", rviz="true"), words)


def test_only_nodes_that_can_come_back_safely_do() -> None:
    found = nodes("panda.launch.py", respawn="true")
    assert [name for name, node in found.items() if node.respawn] == ["/dynamics_node"]


def test_parameters_of_the_user_count_most(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("/**: {ros__parameters: {order: 1}}\n")
    found = nodes("panda_forward_effort.launch.py", params_file=str(file), hardware="false")
    assert all(node.parameters[-1] == file for node in found.values())
    shipped, _, own = found["/forward_effort_node"].parameters
    assert shipped == share.find("config", "controllers_forward_effort.yaml") and own == file
    refused(lambda: nodes("panda.launch.py", params_file="nowhere.yaml"), "there is no file 'nowhere.yaml'")


def test_two_pandas_have_names_and_bags_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "installed", lambda package: package != "ros2bag")
    found = nodes("two_pandas.launch.py", namespace="cell", right="r", record="true", bag="out/both")
    assert len(found) == 2 * 5 and {node.namespace for node in found.values()} == {"/cell/left", "/cell/r"}
    bags = [values(found[f"/cell/{side}/recorder"])["file"] for side in ("left", "r")]
    assert bags == ["out/both_left", "out/both_right"]
    own = nodes("two_pandas.launch.py", record="true")
    names = {str(values(own[f"/{side}/recorder"])["file"]) for side in ("left", "right")}
    assert {name.rpartition("_")[2] for name in names} == {"left", "right"}


@pytest.mark.parametrize("right", ["one", "/cell/one/"])
def test_two_pandas_in_one_namespace_are_refused(right: str) -> None:
    call = partial(nodes, "two_pandas.launch.py", left="one", right=right, namespace="cell")
    refused(call, "give each robot a namespace of its own")


def test_two_nodes_of_one_name_are_refused() -> None:
    panda = read_launch("panda.launch.py")
    twice = Launch(panda.arguments, lambda values: [*panda.processes(values), *panda.processes(values)])
    refused(lambda: twice.start({}), "'/dynamics_node' is started twice")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("def generate_launch_description(): ...", "has no LAUNCH of hodyn_ros.launching"),
        ("import nowhere_at_all", "needs nowhere_at_all, which is not installed"),
        ("def", "is not Python"),
    ],
)
def test_a_file_that_is_no_description_is_said(tmp_path: Path, text: str, wanted: str) -> None:
    file = tmp_path / "own.launch.py"
    file.write_text(text)
    refused(lambda: read_launch(file), wanted)
    with pytest.raises(InputError, match="for ros2 launch alone"):
        xml = tmp_path / "own.launch.xml"
        xml.write_text("<launch/>")
        read_launch(xml)


def test_how_a_process_ended_is_said() -> None:
    assert ending("a-1", -11) == "a-1 has been ended by signal 11 (SIGSEGV)"
    assert ending("a-1", 3) == "a-1 has ended with exit code 3"
    assert ending("a-1", -63).startswith("a-1 has been ended by signal 63 (")


def test_a_launch_has_no_namespace_unless_it_says_so() -> None:
    assert Launch((Argument("count", 3, "How many there are."),), lambda _: ()).values({}) == {"count": 3}


def test_a_prediction_takes_the_place_of_the_dynamics_and_asks_for_quick_commands() -> None:
    started = nodes("panda.launch.py", predict="true", command_rate="1000")
    assert "/dynamics_node" not in started
    assert values(started["/mpc_node"])["period"] == 1e-3
    assert values(started["/controller_node"])["effort_step"] == 10.0
    assert "effort_step" not in values(nodes("panda.launch.py")["/controller_node"])
    for given in (
        {},
        {"command_rate": "1000", "order": "1"},
        {"command_rate": "1000", "feedforward": "none"},
    ):
        with pytest.raises(InputError, match="predict:=true needs command_rate:=1000 or more"):
            nodes("panda.launch.py", predict="true", **given)
