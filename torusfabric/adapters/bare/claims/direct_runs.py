"""`DirectRuns`: the proof of whole runs of a core without memories.

Symbolic words are injected, and taken, in the cycles that the manifest states.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....proof.messages import Run, expected_bits, sent_words
from ....proof.runs import Meanwhile, Runs, run_refuted
from ....proof.snapshot import Snapshot, of_all, spread
from ....proof.symbols import UNKNOWN, named, one_word
from ....topology import IntArray

if TYPE_CHECKING:
    from ....proof.accesses import Access
    from ....rtl import Fabric

__all__ = ["DirectRuns"]


class DirectRuns(Runs):
    """Proof of runs of a core whose nodes inject and receive words in fixed cycles.

    An injected word is defined in its own cycle only, and unknown in all others. So a core that
    samples it earlier or later is refuted.
    """

    def __init__(self, fabric: Fabric, access: Access) -> None:
        super().__init__(access)
        self._width, self._nodes = fabric.width, fabric.nodes
        self._arrivals = fabric.address_map()["arrivals"]
        facts = fabric.interface.facts()["streams"]
        self._steps, self._flits = facts["steps"], facts["block_flits"]
        self._shows = facts["tx_address_cycle"]
        self._injects, self._receives = facts["inject_cycle"], facts["receive_cycle"]
        self._layout = fabric.program.layout

    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Execute runs from a state between runs, and compare the received words.

        Parameters
        ----------
        runs : sequence of Run
            Runs to execute, each from the same state.
        rest : Snapshot
            State between runs.
        variant : int
            Not used: there are no memories to be filled in different ways.
        compares : bool
            Not used: received words are always compared.

        Returns
        -------
        Snapshot
            State after the runs, with unknown values where they differ.
        """
        del variant, compares
        cycles = self.prepare(runs)
        for run in runs:
            program = self.program
            found = np.full((self._nodes, self._layout.recv_words(run.length)), UNKNOWN)
            sent, position = sent_words(program, run), program.groups.position
            for node in range(self._nodes):
                part = int(position[node]) if self._layout.recv_parts > 1 else 0
                found[node, part * sent.shape[1] : (part + 1) * sent.shape[1]] = sent[node]
            meanwhile = Meanwhile(
                driven=partial(self._injected, run), look=partial(self._look, run, found)
            )
            _, left = self.carry_out(runs, cycles, spread(rest, len(runs)), meanwhile)
            self._compare(run, found, int(cycles[0]))
        return of_all(left, len(runs))

    def _flit_of(self, cycle: int, first: int, *, every: int) -> int | None:
        """Return the flit whose cycle it is, or None.

        Flit 0 has the `every` cycles from `first` on; each further flit has those one period of
        `steps` cycles later.
        """
        flit, rest = divmod(cycle - first, self._steps)
        return flit if 0 <= flit < self._flits and rest < every else None

    def _index(self, part: int, chunk: int, flit: int) -> int | None:
        """Return the index of a word among the words of a node; None beyond the end of its part."""
        length = self._layout.part_flits(self.program.flits)
        word = chunk * self._flits + flit
        return part * length + word if word < length else None

    def _injected(self, run: Run, cycle: int) -> dict[str, IntArray]:
        """Return the values of the nets `inject_<node>` in a cycle."""
        flit = self._flit_of(cycle, self._injects, every=1)
        if flit is None:
            return {}
        sent, given = sent_words(self.program, run), {}
        for node in range(self._nodes):
            name = f"inject_{node}"
            bits = np.full((len(self.machine.text.nets[name]), 1), UNKNOWN)
            for chunk in range(len(bits) // self._width):
                index = self._index(0, chunk, flit)
                if index is not None:
                    for position in self.machine.positions:
                        bits[chunk * self._width + position] = sent[node, index]
            given[name] = bits
        return given

    def _look(self, run: Run, found: IntArray, cycle: int) -> None:
        """Check `tx_address`, `rx_enable` and `rx_address` in a cycle, and take arriving words."""
        shown = self._flit_of(cycle, self._shows, every=self._steps)
        if shown is not None:
            self.check([run], cycle, "tx_address", shown)
        at = cycle - self._receives
        here = 0 <= at < self._steps * self._flits
        self.check([run], cycle, "rx_enable", int(here))
        if not here:
            return
        self.check([run], cycle, "rx_address", at)
        flit, step = divmod(at, self._steps)
        for node, ports in enumerate(self._arrivals):
            bits = self.machine.shown(f"receive_{node}")[:, 0].reshape(-1, self._width)
            words = one_word(bits[:, self.machine.positions].T)
            for port, names in enumerate(ports):
                if names[step] is not None:
                    origin, chunk = names[step]
                    index = self._index(origin if self._layout.recv_parts > 1 else 0, chunk, flit)
                    if index is not None:
                        found[node, index] = words[port]

    def _compare(self, run: Run, found: IntArray, cycle: int) -> None:
        """Compare the received words with the expected ones."""
        words, receives = expected_bits(self.program, run, self.machine.sums)
        wrong = (found != words) & receives
        if wrong.any():
            node, at = (int(index[0]) for index in np.nonzero(wrong))
            message = f"must be {named(int(words[node, at]))}, not {named(int(found[node, at]))}"
            raise run_refuted(run, cycle, f"received word {at}", message, node)
