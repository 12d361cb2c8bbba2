"""How fast hodyn_ros is beside its neighbours: `make bench`, or `python -m benchmarks --quick`."""

from hodyn_ros.blas import take_one_thread

take_one_thread()  # times are those of one core
