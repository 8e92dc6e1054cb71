"""Matrix multiplication on a torus of processing elements."""
