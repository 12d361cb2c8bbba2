"""C code of robots with couplings or loops."""
