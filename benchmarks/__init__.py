"""How fast hodyn_ros is beside its neighbours: `make bench`, or `python -m benchmarks --quick`."""
