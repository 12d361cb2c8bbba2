"""Robots as functions of other libraries, with exact derivatives: CasADi, JAX, PyTorch."""
