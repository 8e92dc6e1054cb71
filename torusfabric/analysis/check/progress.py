"""How long work is followed."""

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Progress"]

#: Called now and then with how much is done, and of how much.
Progress: TypeAlias = Callable[[int, int], object]
