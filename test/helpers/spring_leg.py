"""A leg as MJCF whose make-up is that of Cassie's, with figures of its own.

Hip, knee and foot have motors. A leaf spring gives way between knee and shin; a rod with a ball at either
end ties the shank's lower part, the tarsus, to the thigh; the foot turns by a crank and a second rod. At
qpos0 the leg is straight, which is beyond the range of the knee.
"""

_RIGHT = '<body name="{name}" pos="{pos}"><joint name="{name}" axis="0 1 0" {more}/><inertial {inertial}/>'


def _body(name: str, pos: str, mass: float, length: float, inside: str = "", more: str = "") -> str:
    """Return a bar that hangs down, on a hinge about y."""
    moment = mass * length**2 / 12.0
    inertial = f'pos="0 0 {-length / 2}" mass="{mass}" diaginertia="{moment} {moment} {0.02 * moment}"'
    return _RIGHT.format(name=name, pos=pos, more=more, inertial=inertial) + inside + "</body>"


def spring_leg(holds: str = "") -> str:
    """Return the text; `holds`: equalities besides."""
    foot = _body("foot", "0 0 -0.3", 0.4, 0.1, more='armature="0.02" damping="0.5" range="-1.5 1.5"')
    rod = _body("plantar-rod", "0.05 0 0", 0.1, 0.25)
    crank = _body("crank", "0 0 -0.05", 0.1, 0.05, rod)
    tarsus = _body("tarsus", "0 0 -0.3", 0.8, 0.3, crank + foot)
    shin = _body("shin", "0 0 -0.05", 0.6, 0.3, tarsus, 'stiffness="1500" springref="0" damping="0.1"')
    knee = _body("knee", "0 0 -0.4", 0.9, 0.05, shin, 'range="-2 -0.1" armature="0.09" damping="1"')
    achilles = (
        '<body name="achilles-rod" pos="-0.05 0.03 -0.05"><joint name="achilles-rod" type="ball"/>'
        '<inertial pos="0 0 -0.365" mass="0.15" diaginertia="0.0067 0.0067 1e-05"/>'
        '<geom type="capsule" size="0.01" fromto="0 0 0 0 0 -0.73"/></body>'
    )
    hip = _body("hip", "0 0 0", 5.0, 0.4, achilles + knee, 'range="-1 1" armature="0.09" damping="1"')
    return f"""<mujoco model="leg"><compiler angle="radian" autolimits="true"/>
  <default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body name="pelvis" pos="0 0 1"><freejoint name="float"/>
    <geom type="box" size="0.1 0.1 0.1" mass="10"/>{hip}</body>
  </worldbody><equality>
  <connect name="heel" body1="achilles-rod" body2="tarsus" anchor="0 0 -0.73"/>
  <connect name="toes" body1="plantar-rod" body2="foot" anchor="0 0 -0.25"/>{holds}</equality>
  <actuator><motor name="hip" joint="hip" gear="16" ctrlrange="-12 12"/>
  <motor name="knee" joint="knee" gear="16" ctrlrange="-12 12"/>
  <motor name="foot" joint="foot" gear="50" ctrlrange="-0.9 0.9"/></actuator>
  <keyframe><key name="home" qpos="0 0 1 1 0 0 0 0.3 0.997 0 -0.078 0 -0.31 0 0.14 0 0 0"/></keyframe>
</mujoco>"""
