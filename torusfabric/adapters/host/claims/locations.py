"""Expected locations of the words of messages, with which the proof compares the host port.

A location is a memory of a node and an address in it. The locations come from the address map of
the program. The finders of the host port, which the proof is to check, are not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....program.host_words import port_addresses
from ....proof.messages import Locations, Run
from ....topology import IntArray

if TYPE_CHECKING:
    from ....program import Program

__all__ = ["send_memory_numbers", "received_locations", "sent_locations"]


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
    number = run.form_number(program) if form is None else form
    return Locations(*port_addresses(program, number, run.length, run.root, received=False))


def received_locations(program: Program, run: Run, form: int | None = None) -> Locations:
    """Return the locations of the received words, by the address map of a form.

    Received words of a broadcast from any root are in the upper half of a memory. At the root the
    host reads the sent words, in the lower half; there the first address of the upper half is
    subtracted.

    Parameters
    ----------
    program : Program
        The program of the fabric.
    run : Run
        Mode, length and root.
    form : int, optional
        Number of the form, by default that of the run.
    """
    number = run.form_number(program) if form is None else form
    memory, address = port_addresses(program, number, run.length, run.root, received=True)
    half, groups = program.forms[number].upper_half_address, program.forms[number].groups
    if half:
        address = address - half * ((groups.position_of_node == run.root)[:, None] & (address >= 0))
    return Locations(memory, address)


def send_memory_numbers(program: Program, layout: int) -> IntArray:
    """Return the number of each memory among the send memories of a layout; -1 for others.

    A program with several send maps has a set of send memories for each, numbered by `layout`.
    """
    own = np.array([memory.own and memory.layout == layout for memory in program.memories])
    return np.where(own, np.cumsum(own) - 1, -1)
