"""Independent mathematics that the tests hold hodyn_ros against; nothing here imports hodyn_ros."""
