"""Arrays of schedules: integers of a known number of axes, which cannot be written."""

from typing import Any

import numpy as np

from ..errors import InputError
from ..toolchain.values import shown
from ..topology import IntArray

__all__ = ["integer_array"]


def integer_array(what: str, value: Any, axes: int) -> IntArray:
    """Return integers as an array that cannot be written; lists of numbers become arrays.

    Why a view: the array of the caller stays as writable as it was, and nothing is copied.

    Examples
    --------
    >>> integer_array("Chunk", [[0, 1]], 2)
    array([[0, 1]])
    >>> integer_array("Chunk", [0.5], 1)
    Traceback (most recent call last):
    torusfabric.errors.InputError: Chunk must be an array of integers with 1 axis, not [0.5]
    """
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):  # lists of different lengths
        array = np.asarray(None)
    if not array.size and array.dtype == float:  # an empty list
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or array.ndim != axes:
        noun = "axis" if axes == 1 else "axes"
        raise InputError(
            f"{what} must be an array of integers with {axes} {noun}, not {shown(value)}"
        )
    array = array.astype(np.int64) if array.dtype == np.uint64 else array.view()
    array.flags.writeable = False
    return array
