"""A quadruped as URDF, with the names of the Go2 of Unitree and round figures of its own."""


def quadruped() -> str:
    """Return the text."""
    legs = "".join(map(_leg, ("FL", "FR", "RL", "RR")))
    return f'<robot name="quadruped">{_link("base", 7.0, 0.3)}{legs}</robot>'


def _leg(name: str) -> str:
    x, y = (0.2 if name[0] == "F" else -0.2), (0.05 if name[1] == "L" else -0.05)
    ranges = {"hip": (-1.0, 1.0), "thigh": (-1.5, 3.5), "calf": (-2.7, -0.8)}
    text, parent, places = "", "base", {"hip": f"{x} {y} 0", "thigh": f"0 {2 * y} 0", "calf": "0 0 -0.2"}
    for part, (lower, upper) in ranges.items():
        child, axis = f"{name}_{part}", "1 0 0" if part == "hip" else "0 1 0"
        text += _link(child, 0.8, 0.1 if part == "hip" else 0.2)
        text += (
            f'<joint name="{child}_joint" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{places[part]}"/><axis xyz="{axis}"/>'
            f'<limit lower="{lower}" upper="{upper}" velocity="20" effort="40"/></joint>'
        )
        parent = child
    return text + (
        f'<link name="{name}_foot"/><joint name="{name}_foot_joint" type="fixed"><parent link="{parent}"/>'
        f'<child link="{name}_foot"/><origin xyz="0 0 -0.2"/></joint>'
    )


def _link(name: str, mass: float, length: float) -> str:
    moment = mass * length**2 / 12.0
    return (
        f'<link name="{name}"><inertial><origin xyz="0 0 {-length / 4}"/><mass value="{mass}"/>'
        f'<inertia ixx="{moment}" ixy="0" ixz="0" iyy="{moment}" iyz="0" izz="{moment}"/></inertial></link>'
    )
