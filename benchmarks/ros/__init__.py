"""What dynamics_node costs beside a node that does nothing: `make bench-ros`."""
