"""How fast hodyn_ros is beside its neighbours: `make bench`, or `python -m benchmarks --quick`."""

import os

# Before NumPy: times are those of one core, and a second thread of BLAS that waits would count.
os.environ.setdefault("OMP_NUM_THREADS", "1")
