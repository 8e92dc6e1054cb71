"""Collectives on k-ary n-cubes from rotated trees."""

from .plan import NECKLACE

__all__ = ["NECKLACE"]
