"""C code for small processors: numbers of 32 bits, constant time, a stack that is known."""
