"""Types of arrays."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoolArray", "IntArray", "IntLike"]

#: Node numbers, ports, offsets, blocks and the like.
IntArray: TypeAlias = NDArray[np.integer[Any]]

#: What is taken elementwise: an integer, or an array or a list of integers.
IntLike: TypeAlias = int | np.integer[Any] | Sequence[int] | IntArray

#: Flags.
BoolArray: TypeAlias = NDArray[np.bool_]
