"""Parallel manipulators by limb decomposition: every limb a serial chain from the ground to the platform.

A. Mueller, S. Kumar, T. Kordik, "A Recursive Lie-Group Formulation for the Second-Order Time Derivatives of
the Inverse Dynamics of Parallel Kinematic Manipulators" (2023), extended to any order.
"""
