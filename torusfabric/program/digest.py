"""Names for contents: digests of values, and of what they are made of."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

__all__ = ["update_digest"]


def update_digest(digest: Any, value: Any) -> None:
    """Feed a value into a digest.

    Parameters
    ----------
    digest : hash object of `hashlib`
    value : object
        An array of integers, a tuple or a dataclass of such values, or what `repr` tells apart.
    """
    if isinstance(value, np.ndarray):
        digest.update(f"{value.shape}".encode())
        digest.update(np.ascontiguousarray(value, dtype="<i8").data)
    elif isinstance(value, tuple):
        for item in value:
            update_digest(digest, item)
    elif is_dataclass(value):
        for item in fields(value):
            update_digest(digest, getattr(value, item.name))
    else:
        digest.update(repr(value).encode())
