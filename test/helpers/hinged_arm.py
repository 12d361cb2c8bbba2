"""A URDF with one joint, and a tool behind a fixed joint."""

HINGED_ARM = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"/>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="link"/><axis xyz="0 1 0"/></joint>
  <link name="link"><inertial><origin xyz="0 0 0.2"/><mass value="1"/>
    <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.002"/></inertial></link>
  <joint name="weld" type="fixed"><parent link="link"/><child link="tool"/>
    <origin xyz="0.1 0.2 0.4" rpy="0.3 -0.5 0.7"/></joint>
  <link name="tool"/>
</robot>"""
