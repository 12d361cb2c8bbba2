"""A robot as a wheel of its own: its exported functions, compiled, called from Python with NumPy alone."""
