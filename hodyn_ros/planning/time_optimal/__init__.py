"""The fastest motion along a path that keeps all limits of a robot."""
