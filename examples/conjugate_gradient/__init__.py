"""Example: conjugate gradients for a Poisson problem on a torus of processing elements."""
