"""How fast hodyn_ros is beside its neighbours: `make bench`, or `python -m benchmarks --quick`."""

import os

# Times are those of one core: a second thread of BLAS would wait for as long as the first one computes, and count. Before NumPy.
os.environ.setdefault("OMP_NUM_THREADS", "1")
