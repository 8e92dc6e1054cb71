"""Collectives on tori with equal sides (k-ary n-cubes), from one tree and its rotations."""
