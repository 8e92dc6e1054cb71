"""Where the words of messages lie in memories, as the host port finds them."""

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
    """Where the address map says that what a node sends lies, by the form of the run or another."""
    number = run.form(program) if form is None else form
    return Locations(*asked_addresses(program, number, run.length, run.root, received=False))


def received_locations(program: Program, run: Run, form: int | None = None) -> Locations:
    """Return where the address map says that what a node has received lies, as the host asks."""
    number = run.form(program) if form is None else form
    memory, address = asked_addresses(program, number, run.length, run.root, received=True)
    half, groups = program.forms[number].upper_half, program.forms[number].groups
    if half:
        address = address - half * ((groups.position == run.root)[:, None] & (address >= 0))
    return Locations(memory, address)


def own_numbers(program: Program, layout: int) -> IntArray:
    """Of each memory its number among those in which messages lie by a layout; -1 of others."""
    own = np.array([memory.own and memory.layout == layout for memory in program.memories])
    return np.where(own, np.cumsum(own) - 1, -1)
