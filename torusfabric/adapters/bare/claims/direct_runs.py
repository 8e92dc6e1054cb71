"""`DirectRuns`: the proof of whole runs of a core without memories.

The proof injects symbolic words, and takes received words, in the cycles that the manifest states.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....proof.messages import Run, expected_bits, sent_words
from ....proof.runs import Environment, Runs, make_run_refutation
from ....proof.snapshot import Snapshot, copy_to_runs, cover_runs
from ....proof.symbols import UNKNOWN, bit_of_word, bit_text
from ....topology import IntArray

if TYPE_CHECKING:
    from ....proof.accesses import NodeAccess
    from ....rtl import Fabric

__all__ = ["DirectRuns"]


class DirectRuns(Runs):
    """Proof of whole runs of a core without memories, whose nodes send and receive in fixed cycles.

    To *inject* a word is to drive it at the input of a node. An input has an injected word in one
    cycle only, and is unknown in all others. So a core that samples the word earlier or later is
    refuted.
    """

    def __init__(self, fabric: Fabric, access: NodeAccess) -> None:
        super().__init__(access)
        self._width, self._nodes = fabric.width, fabric.nodes
        self._arrivals = fabric.address_map()["arrivals"]
        facts = fabric.interface.manifest_entries()["streams"]
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
        cycles = self.prepare_machine(runs)
        for run in runs:
            program = self.program
            found = np.full((self._nodes, self._layout.recv_words(run.length)), UNKNOWN)
            sent, position = sent_words(program, run), program.groups.position_of_node
            for node in range(self._nodes):
                part = int(position[node]) if self._layout.recv_parts > 1 else 0
                found[node, part * sent.shape[1] : (part + 1) * sent.shape[1]] = sent[node]
            meanwhile = Environment(
                driven=partial(self._injected_values, run),
                look=partial(self._check_cycle, run, found),
            )
            _, left = self.execute_runs(runs, cycles, copy_to_runs(rest, len(runs)), meanwhile)
            self._compare_words(run, found, int(cycles[0]))
        return cover_runs(left, len(runs))

    def _flit_in_cycle(self, cycle: int, first: int, *, every: int) -> int | None:
        """Return the number of the flit that nodes send, or receive, in a cycle; None for no flit.

        Flit k belongs to `every` consecutive cycles from cycle ``first + k * steps`` on, where
        ``steps`` is the number of steps of the schedule.
        """
        flit, rest = divmod(cycle - first, self._steps)
        return flit if 0 <= flit < self._flits and rest < every else None

    def _word_index(self, part: int, chunk: int, flit: int) -> int | None:
        """Return the index of a flit among the words of a node; None for a flit of padding.

        `part` is the number of the message, `chunk` that of its chunk, and `flit` that of the flit
        in the chunk.

        The last chunk of a message may be shorter than the others, and is then padded.
        """
        length = self._layout.part_flits(self.program.flits)
        word = chunk * self._flits + flit
        return part * length + word if word < length else None

    def _injected_values(self, run: Run, cycle: int) -> dict[str, IntArray]:
        """Return the words that nodes send in a cycle, as values of the nets ``inject_<node>``.

        The value of a net consists of a word for each chunk. In cycles without a flit the result is
        empty, and the nets are unknown. `run` is the run under way, and `cycle` counts from its
        start.
        """
        flit = self._flit_in_cycle(cycle, self._injects, every=1)
        if flit is None:
            return {}
        sent, given = sent_words(self.program, run), {}
        for node in range(self._nodes):
            name = f"inject_{node}"
            bits = np.full((len(self.machine.text.nets[name]), 1), UNKNOWN)
            for chunk in range(len(bits) // self._width):
                index = self._word_index(0, chunk, flit)
                if index is not None:
                    for position in self.machine.positions:
                        bits[chunk * self._width + position] = sent[node, index]
            given[name] = bits
        return given

    def _check_cycle(self, run: Run, found: IntArray, cycle: int) -> None:
        """Check the outputs of the core in one cycle of a run, and store the words that arrive.

        The outputs `tx_address`, `rx_enable` and `rx_address` must have the values that the
        schedule gives for the cycle. Each word at an in-port is stored in `found`, one row for each
        node, at the index of its block and flit: the address map says which block arrives at each
        in-port in each step. `run` is the run under way, and `cycle` counts from its start.
        """
        shown = self._flit_in_cycle(cycle, self._shows, every=self._steps)
        if shown is not None:
            self.check_output([run], cycle, "tx_address", shown)
        at = cycle - self._receives
        here = 0 <= at < self._steps * self._flits
        self.check_output([run], cycle, "rx_enable", int(here))
        if not here:
            return
        self.check_output([run], cycle, "rx_address", at)
        flit, step = divmod(at, self._steps)
        for node, ports in enumerate(self._arrivals):
            bits = self.machine.net_values(f"receive_{node}")[:, 0].reshape(-1, self._width)
            words = bit_of_word(bits[:, self.machine.positions].T)
            for port, names in enumerate(ports):
                if names[step] is not None:
                    origin, chunk = names[step]
                    index = self._word_index(
                        origin if self._layout.recv_parts > 1 else 0, chunk, flit
                    )
                    if index is not None:
                        found[node, index] = words[port]

    def _compare_words(self, run: Run, found: IntArray, cycle: int) -> None:
        """Compare the received words with the expected ones.

        `found` has the received words, one row for each node, and `run` is the executed run. A
        wrong word raises `Refuted`, the error of a false claim, whose message names `cycle`, the
        last cycle of the run.
        """
        words, receives = expected_bits(self.program, run, self.machine.sums)
        wrong = (found != words) & receives
        if wrong.any():
            node, at = (int(index[0]) for index in np.nonzero(wrong))
            message = (
                f"must be {bit_text(int(words[node, at]))}, not {bit_text(int(found[node, at]))}"
            )
            raise make_run_refutation(run, cycle, f"received word {at}", message, node)
