"""Collectives on k-ary n-cubes from rotated trees."""
