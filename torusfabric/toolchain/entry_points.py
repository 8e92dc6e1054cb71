"""What other packages offer, by entry points."""

from collections.abc import Callable
from typing import Any

from ..errors import InputError

__all__ = ["read_entry_points"]


def read_entry_points(group: str, what: str, register: Callable[[Any], object]) -> None:
    """Register what the entry points of a group name.

    Parameters
    ----------
    what : str
        What each must name, for the message of an error.

    Raises
    ------
    InputError
        If one of them cannot be imported, or is refused.
    """
    from importlib.metadata import entry_points  # here, since few need it

    for point in entry_points(group=group):
        try:
            register(point.load())
        except Exception as error:
            raise InputError(
                f"Entry point {point.name} of {group} must name {what}, "
                f"not {point.value!r}: {error}"
            ) from error
