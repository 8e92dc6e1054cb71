"""Expected locations of the words of messages, with which the proof compares the host port.

A location is a memory of a node and an address in it. The locations come from the address map of
the program, which gives the memory and the first address of each block. The hardware of the host
port that computes locations (its *finders*) is not used, because the proof has to check it.
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
    """Return memory and address of each word that nodes send, by the address map of a form.

    An address map gives the memory and the first address of each block at a node. The two results
    are arrays of shape (nodes, words).

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
    """Return memory and address of each word that a host reads after a run, by the address map.

    The address map of a form gives the memory and the first address of each block at a node. The
    two results are arrays of shape (nodes, words).

    In a broadcast from any root, received words are in the upper half of a memory. The root
    receives nothing; there the host reads the words that the root sent, at the same addresses of
    the lower half.

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
    """Return, for each memory of a node, its number among the send memories of one send map.

    A send map gives the memory and address of each word to send. Each send map of a program has
    send memories of its own, numbered from 0; `layout` is the number of the send map. All other
    memories get -1. For example, if memories 0 and 3 belong to send map 0, and memory 1 to send map
    1, the result for ``layout=0`` is ``[0, -1, -1, 1]``.
    """
    own = np.array([memory.own and memory.layout == layout for memory in program.memories])
    return np.where(own, np.cumsum(own) - 1, -1)
