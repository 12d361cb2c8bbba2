"""The executables, one file each. However one starts, BLAS takes one thread."""

from hodyn_ros.blas import take_one_thread

take_one_thread()
