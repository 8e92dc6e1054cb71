"""Circuit-switched broadcast from diagonal to diagonal, or by ever finer levels."""

from .plan import DIAGONAL

__all__ = ["DIAGONAL"]
