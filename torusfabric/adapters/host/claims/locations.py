"""Locations of the words of messages in memories, as the host port has to find them.

The proof compares the port with these. They come from the address map of the program, not from the
finders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....program.host_words import asked_addresses
from ....proof.messages import Locations, Run
from ....topology import IntArray

if TYPE_CHECKING:
    from ....program import Program

__all__ = ["own_numbers", "received_locations", "sent_locations"]


def sent_locations(program: Program, run: Run, form: int | None = None) -> Locations:
    """Return the locations of the words to send, by the address map of a form.

    Parameters
    ----------
    program : Program
        The program of the fabric.
    run : Run
        Mode, length and root.
    form : int, optional
        Number of the form, by default that of the run.
    """
    number = run.form(program) if form is None else form
    return Locations(*asked_addresses(program, number, run.length, run.root, received=False))


def received_locations(program: Program, run: Run, form: int | None = None) -> Locations:
    """Return the locations of the received words, by the address map of a form.

    Received words of a broadcast from any root lie in the upper half of a memory. For the root
    itself the host reads the sent words, so the offset of the upper half is subtracted.

    Parameters
    ----------
    program : Program
        The program of the fabric.
    run : Run
        Mode, length and root.
    form : int, optional
        Number of the form, by default that of the run.
    """
    number = run.form(program) if form is None else form
    memory, address = asked_addresses(program, number, run.length, run.root, received=True)
    half, groups = program.forms[number].upper_half, program.forms[number].groups
    if half:
        address = address - half * ((groups.position == run.root)[:, None] & (address >= 0))
    return Locations(memory, address)


def own_numbers(program: Program, layout: int) -> IntArray:
    """Return the number of each memory among the send memories of a layout; -1 for others."""
    own = np.array([memory.own and memory.layout == layout for memory in program.memories])
    return np.where(own, np.cumsum(own) - 1, -1)
