"""`DirectRuns`: the proof that every run of a core without memories delivers the right words.

The proof executes the gates of the core cycle by cycle, with a symbol such as "word 5 of node 3" in
place of each word. In the cycles that the manifest states, it drives the words of the messages at
the inputs of the nodes, and collects the words at their outputs. At the end of the run it compares
the collected words with those that the collective must deliver.
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
    """Proof that runs of a core without memories deliver the right words in the stated cycles.

    The nodes of such a core send and receive each word in a fixed cycle, which the manifest states.
    To *inject* a word is to drive it at the input of a node. A word is injected in its stated cycle
    only; in all other cycles the input is unknown. So a core that samples the word earlier or later
    is refuted.
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
        """Execute runs symbolically, and compare the received words with the expected ones.

        A wrong word raises `Refuted`, the error of a false claim.

        Parameters
        ----------
        runs : sequence of Run
            Runs to execute, each from the same state.
        rest : Snapshot
            State of all registers between two runs, in which each of `runs` begins.
        variant : int
            Not used: there are no memories to be filled in different ways.
        compares : bool
            Not used: received words are always compared.

        Returns
        -------
        Snapshot
            State of all registers after the runs. A bit that is the same constant after each run
            keeps it; all other bits are unknown.
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

        `part` is the number of the message among those of the node, `chunk` the number of the chunk
        in the message, and `flit` the number of the flit in the chunk. The last chunk of a message
        may be shorter than the others, and is then padded.
        """
        length = self._layout.part_flits(self.program.flits)
        word = chunk * self._flits + flit
        return part * length + word if word < length else None

    def _injected_values(self, run: Run, cycle: int) -> dict[str, IntArray]:
        """Return the words that nodes send in a cycle: input ``inject_<node>`` -> symbolic bits.

        The symbolic bits of an input have the shape (bits, 1), with one word for each chunk, chunk
        0 in the lowest bits. Bits of padding, and bit positions that the proof does not follow, are
        unknown. In cycles without a flit the result is empty, and all inputs are unknown. `run` is
        the run under way, and `cycle` counts from its start.
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
        manifest states for the cycle; otherwise `Refuted`, the error of a false claim, is raised.
        The words that arrive are stored in `found`, shape (nodes, words), at the index that
        `_word_index` returns. The address map says which block arrives at each in-port in each
        step. `run` is the run under way, and `cycle` counts from its start.
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
        """Compare the words that nodes received in `run` with those that the collective delivers.

        `found` has the received words as symbolic bits, shape (nodes, words). A wrong word raises
        `Refuted`, the error of a false claim, whose message names `cycle`, the last cycle of the
        run.
        """
        words, receives = expected_bits(self.program, run, self.machine.sums)
        wrong = (found != words) & receives
        if wrong.any():
            node, at = (int(index[0]) for index in np.nonzero(wrong))
            message = (
                f"must be {bit_text(int(words[node, at]))}, not {bit_text(int(found[node, at]))}"
            )
            raise make_run_refutation(run, cycle, f"received word {at}", message, node)
