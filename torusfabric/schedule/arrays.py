"""Read-only integer arrays as fields of schedules."""

from typing import Any, ClassVar

import numpy as np

from ..errors import InputError
from ..toolchain.values import message_text
from ..topology import IntArray
from ..topology.topology import freeze_arrays

__all__ = ["ArrayFields", "integer_array"]


def integer_array(what: str, value: Any, axes: int) -> IntArray:
    """Return integers as a read-only array with `axes` axes; lists of numbers become arrays.

    `what` names `value` in messages. The result is a view of `value`, so nothing is copied and the
    caller's own array stays writeable.

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
            f"{what} must be an array of integers with {axes} {noun}, not {message_text(value)}"
        )
    array = array.astype(np.int64) if array.dtype == np.uint64 else array.view()
    array.flags.writeable = False
    return array


class ArrayFields:
    """Base class of dataclasses with read-only integer arrays as fields.

    Attributes
    ----------
    arrays : dict of str to int
        Number of axes of each array field, by its name.
    """

    arrays: ClassVar[dict[str, int]]

    def __post_init__(self) -> None:
        for name, axes in self.arrays.items():
            array = integer_array(name.capitalize(), getattr(self, name), axes)
            object.__setattr__(self, name, array)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickle restores arrays as writeable.
        self.__dict__.update(state)
        freeze_arrays(state.values())
