"""Sample sort on a torus of processing elements."""
