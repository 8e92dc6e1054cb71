"""Link latency: the cycles from a router to the in-port of its neighbour, equal along an axis."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ..errors import InputError

__all__ = ["MOST_CYCLES", "Latency", "parse_latency"]

#: The largest latency of a link in cycles.
MOST_CYCLES = 64

#: Latency in cycles in any form that users may pass: one number for all links, one for each axis in
#: turn, or a mapping from axes to cycles, with 1 for the other axes. Text also works: ``0:1,1:4``.
Latency: TypeAlias = int | str | Sequence[int] | Mapping[int, int] | Mapping[str, int]


def parse_latency(latency: Latency, axes: int, name: str) -> int | tuple[int, ...]:
    """Return a latency in the form of `Topology.link_latency`.

    This is one number if all links are equal, else one number for each axis.

    Parameters
    ----------
    axes : int
        Number of axes of the topology, 0 if it has none.
    name : str
        Name of the topology, for error messages.

    Raises
    ------
    InputError
        If the latency is invalid, or names axes that the topology does not have.

    Examples
    --------
    The first latency is equal for both axes. In the second, axis 0 has the default, 1 cycle.

    >>> parse_latency("0:2,1:2", 2, "4x4"), parse_latency({1: 4}, 2, "4x4")
    (2, (1, 4))
    """
    if isinstance(latency, str):
        latency = _parse_text(latency)
    if isinstance(latency, int | np.integer) and not isinstance(latency, bool):
        return _check_cycles(latency, latency)
    if not axes and isinstance(latency, Mapping | Sequence):
        raise InputError(
            f"Link latency must be a number of cycles on {name}, which has no axes, "
            f"not {_latency_text(latency)}"
        )
    if isinstance(latency, Mapping):
        of_axis = dict(enumerate([1] * axes))
        for axis, cycles in latency.items():
            if not re.fullmatch(r"[0-9]{1,3}", str(axis)) or int(axis) >= axes:
                known = ", ".join(map(str, range(axes)))
                raise InputError(
                    f"Link latency must be of some of the axes {known} of {name}, not of {axis}"
                )
            of_axis[int(axis)] = _check_cycles(cycles, latency)
        found = tuple(of_axis.values())
    elif isinstance(latency, Sequence) and len(latency) == axes:
        found = tuple(_check_cycles(cycles, latency) for cycles in latency)
    else:
        raise _latency_error(latency)
    return found[0] if len(set(found)) == 1 else found


def _parse_text(text: str) -> int | dict[int, int]:
    """Parse text into one number of cycles, or a mapping from axes to cycles."""
    if re.fullmatch(r"[0-9]{1,9}", text):
        return int(text)
    entries = [
        re.fullmatch(r"([0-9]{1,3}):([0-9]{1,9})", entry.strip()) for entry in text.split(",")
    ]
    read = {int(entry[1]): int(entry[2]) for entry in entries if entry}
    if None in entries:
        raise _latency_error(text)
    if len(read) < len(entries):
        raise InputError(f"Link latency must be given once for each axis, not {text}")
    return read


def _check_cycles(cycles: object, whole: Latency) -> int:
    """Return `cycles` if it is a valid latency of one link, else raise an `InputError`.

    `whole` is the latency that the user gave for all links, which the message quotes.
    """
    if isinstance(cycles, bool) or not isinstance(cycles, int | np.integer):
        raise _latency_error(whole)
    if not 1 <= cycles <= MOST_CYCLES:
        raise _latency_error(whole)
    return int(cycles)


def _latency_error(latency: object) -> InputError:
    return InputError(
        f"Link latency must be from 1 to {MOST_CYCLES} cycles, or AXIS:CYCLES,.., "
        f"not {_latency_text(latency)}"
    )


def _latency_text(latency: object) -> str:
    """Return the text of `latency` as a user would write it."""
    if isinstance(latency, Mapping):
        return ",".join(f"{axis}:{cycles}" for axis, cycles in latency.items())
    return str(latency)
