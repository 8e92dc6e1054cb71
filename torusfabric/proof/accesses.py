"""What the host does to the nodes, as the nodes are given it: a write, or a read, a cycle.

All nodes are written, or read, at once: each is given a write or a read that is for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..rtl.host import suffix
from ..topology import IntArray
from .messages import Run, received_places, sent_places, sent_words
from .symbols import UNKNOWN

if TYPE_CHECKING:
    from ..program import Program
    from .machine import Override

__all__ = ["Bits", "Reads", "Writes"]

#: Numbers as the bits of a port of a module that matter; -1 is not known.
Bits = Callable[[str, str, IntArray], IntArray]


class Writes:
    """Writes of what nodes send in some runs, which all end at once.

    Parameters
    ----------
    program : Program
    runs : sequence of Run
    endpoints : dict of str to (list of int)
        The nodes of each module.
    bits : Bits

    Attributes
    ----------
    count : int
        The most writes of a run.
    """

    def __init__(
        self, program: Program, runs: Sequence[Run], endpoints: dict[str, list[int]], bits: Bits
    ) -> None:
        self._endpoints, self._bits = endpoints, bits
        words = [sent_words(program, run) for run in runs]
        places = [sent_places(program, run) for run in runs]
        self.count = max(of_run.shape[1] for of_run in words)
        shape = self.count, program.topology.nodes, len(runs)
        self._data = np.full(shape, UNKNOWN, np.int32)
        self._layouts = 1 + max(mode.layout for mode in program.modes)
        self._bank, self._address = (np.full((self._layouts, *shape), -1) for _ in range(2))
        self._enable = np.zeros(shape, np.int32)
        for k, (run, word, place) in enumerate(zip(runs, words, places, strict=True)):
            layout = program.modes[run.mode].layout
            number = np.full(len(program.memories), -1)
            own = [n for n, m in enumerate(program.memories) if m.own and m.layout == layout]
            number[own] = np.arange(len(own))
            there = slice(self.count - word.shape[1], None)
            self._data[there, :, k] = word.T
            self._bank[layout, there, :, k] = number[place.memory].T
            self._address[layout, there, :, k] = place.address.T
            self._enable[there, :, k] = place.address.T >= 0

    def at(self, step: int) -> dict[str, Override]:
        """What nodes are given in a step: the write of it, and the data of the one before."""
        return {module: self._of(module, nodes, step) for module, nodes in self._endpoints.items()}

    def _of(self, module: str, nodes: list[int], step: int) -> Override:
        """What the nodes of a module are given."""
        numbers = np.array(nodes)[:, None]
        given = {"write_node": self._bits(module, "write_node", numbers)}
        there = 0 <= step < self.count
        given["write_enable"] = np.zeros((1, 1, 1), np.int32)
        if there:
            given["write_enable"] = self._enable[step][nodes][None]
        for layout in range(self._layouts):
            for name, values in (("write_bank", self._bank), ("write_address", self._address)):
                port = name + suffix(layout)
                if there:
                    given[port] = self._bits(module, port, values[layout, step][nodes])
        if 0 <= step - 1 < self.count:
            given["write_data"] = self._data[step - 1][nodes][None]
        return given


class Reads:
    """Reads of what nodes have received in some runs.

    Parameters
    ----------
    program : Program
    runs : sequence of Run
    endpoints, bits
        As for `Writes`.

    Attributes
    ----------
    count : int
        The most reads of a run.
    """

    def __init__(
        self, program: Program, runs: Sequence[Run], endpoints: dict[str, list[int]], bits: Bits
    ) -> None:
        self._endpoints, self._bits = endpoints, bits
        places = [received_places(program, run) for run in runs]
        self.count = max(place.address.shape[1] for place in places)
        shape = self.count, program.topology.nodes, len(runs)
        self._memory, self._address = np.full(shape, -1), np.full(shape, -1)
        self._given = np.array([place.bits for place in places])
        for k, place in enumerate(places):
            there = slice(0, place.address.shape[1])
            self._address[there, :, k] = place.address.T
            self._memory[there, :, k] = np.where(place.address >= 0, place.memory, -1).T

    def at(self, step: int) -> dict[str, Override]:
        """What nodes are asked in a step."""
        return {module: self._of(module, nodes, step) for module, nodes in self._endpoints.items()}

    def _of(self, module: str, nodes: list[int], step: int) -> Override:
        """What the nodes of a module are asked; at rest the sequencer passes addresses on."""
        given = {"read_node": self._bits(module, "read_node", np.array(nodes)[:, None])}
        if step < self.count:
            address = self._address[step][nodes]
            given["read_bank"] = self._bits(module, "read_bank", self._memory[step][nodes])
            for port in ("read_address", *(f"read_{k}" for k in range(64))):
                known = self._bits(module, port, address)
                beyond = np.arange(len(known))[:, None, None] >= self._given
                given[port] = np.where(beyond, UNKNOWN, known)
        return given
