"""Example: a three-dimensional FFT on a torus of processing elements."""
