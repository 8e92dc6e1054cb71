"""Proof of whole runs, from the outputs of loaders to the words that unloaders read.

The proof executes the emitted core symbolically. Loaders and unloaders are replaced by their proved
effects: which words they write, and which words they read. A run has a number. Its lowest bits are
the section of the memories; one further bit distinguishes messages in the own block of a node. At
the same time other messages are loaded and other runs are executed. With B buffers the proof gives
these arbitrary effects in their own sections::

    phase of run s       actions of others, with unknown values
    loaders write s      runs s - B + 1 .. s - 1, loads of s + 1
    run s is executed    loads of s + 1 .. s + B - 1
    unloaders read s     runs s + 1 .. s + B - 1, loads up to s + B + 1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ....proof.accesses import Access, Steps, of_runs
from ....proof.memory_runs import MemoryRuns
from ....proof.messages import Locations, Run, in_beats
from ....proof.runs import AT_ONCE, Meanwhile, Variant
from ....proof.snapshot import Snapshot, arrays, of_all, spread, unchanged, with_arrays, with_either
from ....proof.symbols import UNKNOWN
from ....rtl.netlist import Part, Role
from ....topology import BoolArray, IntArray

if TYPE_CHECKING:
    from ....proof.machine import Machine, Override
    from ....rtl import Fabric
    from ..engine import EngineShape

__all__ = ["StreamAccess", "StreamRuns"]

#: Cycles from the start of a run until all nodes have its section number.
SETTLED = 4

#: The write enables, and the port that tells which bytes of a word are valid.
LOADS, KEEP = ("write_enable", "own_enable"), "tkeep"


class StreamAccess(Access):
    """Accesses to the memories of nodes, with the signals that loaders and unloaders drive.

    Attributes
    ----------
    loader : EngineShape
        Parameters of the loaders.
    number : int
        Number of the run that is executed.
    lead : int
        Cycles from `ends` of the run port to the last cycle of a run.
    """

    port, refuses, follows = "tdata", False, 1

    #: True if the number of the last flit of a block is driven all the time, not only with a start.
    always_last = False

    def __init__(self, fabric: Fabric, machine: Machine) -> None:
        super().__init__(fabric, machine)
        self._core = fabric.core
        self._outlets: dict[str, list[int]] = {
            module: [int(name.rsplit("_", 1)[1]) for name in group.names]
            for module, group in machine.groups.items()
            if fabric.netlist.roles.get(module.removeprefix(fabric.prefix)) is Role.OUTLET
        }
        self.nodes = self.nodes | self._outlets
        self.loader: EngineShape = fabric.netlist.modules["loader"]().shape
        self.answer, self.number = self.loader.port.answer, 0
        self.lead = self._core.run_port.lead
        sequencer = next(iter(fabric.netlist.having(Role.SEQUENCER)))
        # Each value that is sampled with a start comes from one net.
        inputs = sequencer.inputs.items()
        self._nets = {name: part.net for name, (part,) in inputs if isinstance(part, Part)}
        self._nets |= sequencer.outputs

    def net(self, name: str) -> str:
        """Return the net of an input or an output of the sequencer."""
        return self._nets.get(name, name)

    @property
    def shown(self) -> dict[str, list[int]]:
        """For each module that drives the data of streams, the nodes of its instances."""
        return self._outlets

    def idle(self) -> dict[str, IntArray]:
        """Return the values of write enables in cycles without a write."""
        names = [name for name in self.machine.text.nets if name.startswith(LOADS)]
        return dict.fromkeys(names, np.array([[0]]))

    def asked(self, runs: Sequence[Run]) -> dict[str, IntArray]:
        """Return the values at the run port that are sampled with the start of each run."""
        forms = [run.form(self.program) for run in runs]
        section = self.number % self.loader.facts.sections.count
        found = {
            "entry": self.entries(forms),
            "root": np.array([run.root for run in runs]),
            "operation": np.array([run.operation for run in runs]),
            "section": np.full(len(runs), section),
        }
        several = self.always_last or len(self.program.forms) > 1
        return found if several else found | self.last_flits(runs)

    def entries(self, forms: list[int]) -> IntArray:
        """Return the numbers by which the run port identifies forms."""
        return np.array(forms)

    def leads(self, runs: Sequence[Run]) -> IntArray:
        """Return the cycles from `ends` to the last cycle, for each run."""
        return np.full(len(runs), self.lead)

    def sends(self, run: Run) -> BoolArray:
        """Return an array that is True for each node that sends packets."""
        form = run.form(self.program)
        packets, position = self.loader.packets[form], self.program.forms[form].groups.position
        found: BoolArray = packets.there & ((position == run.root) | (not packets.at_root))
        return found

    def last_flits(self, runs: Sequence[Run]) -> dict[str, IntArray]:
        """Return the number of the last flit of a block in each run."""
        forms = [self.program.forms[run.form(self.program)] for run in runs]
        last = [0 if form.loop.padded else form.block_of(run.length) - 1
                for form, run in zip(forms, runs, strict=True)]  # fmt: skip
        return {"last": np.array(last)}

    def writes(self, runs: Sequence[Run]) -> Steps:
        """Return the steps in which loaders write words to memories and own blocks."""
        bank, address = self.located(runs, self._sent, ends_at_once=True)
        own = of_runs([self._own_index(run) for run in runs], ends_at_once=True)
        there = address >= 0
        numbers = {
            "write_enable": there.astype(int),
            "write_bank": bank,
            "write_address": address,
            "own_enable": (there & (own >= 0)).astype(int),
            "own_index": own,
        }
        return Steps(
            len(address),
            numbers,
            {"write_data": self.sent(runs)},
            always=self.everywhere(write_section=self.number),
            otherwise=dict.fromkeys(LOADS, 0),
        )

    def everywhere(self, **numbers: int) -> dict[str, IntArray]:
        """Return numbers of runs, modulo twice the sections, as inputs of all nodes."""
        wrap, nodes = 2 * self.loader.facts.sections.count, self.program.topology.nodes
        return {port: np.full(nodes, number % wrap) for port, number in numbers.items()}

    def _sent(self, run: Run) -> Locations:
        """Return the locations of the words that nodes send; address -1 where a node sends none."""
        form = run.form(self.program)
        bank, address = self._core.places(
            received=False, form=form, length=run.length, root=run.root
        )
        return Locations(bank, np.where(self.sends(run)[:, None], address, -1))

    def _index(self, words: int, length: int) -> IntArray:
        """Return the index within its packet of each beat, shape (1, beats).

        Parameters
        ----------
        words : int
            Number of words of all packets.
        length : int
            Words of a packet.
        """
        index = np.arange(words)[None] % length
        return in_beats(index, length, self.beat)[..., 0] // self.beat

    def _flits(self, words: int, length: int) -> IntArray:
        """Return the number of flits in each beat, shape (1, beats); parameters as in `_index`."""
        return (in_beats(np.arange(words)[None], length, self.beat) >= 0).sum(axis=-1)

    def _own_index(self, run: Run) -> IntArray:
        """Return the index within its packet of each beat for the own node; -1 for other beats."""
        part = self.program.part(run.form(self.program))
        index = self._index(words := part.layout.send_words(run.length), run.length)
        if not part.schedule.collective.personal:
            return np.repeat(index, self.program.topology.nodes, axis=0)
        packet = in_beats(np.arange(words)[None] // run.length, run.length, self.beat)[..., 0]
        return np.where(part.groups.position[:, None] == packet, index, -1)

    def _received(self, run: Run) -> Locations:
        """Return the locations of the words that each node receives."""
        form = run.form(self.program)
        return Locations(
            *self._core.places(received=True, form=form, length=run.length, root=run.root)
        )

    def reads(self, runs: Sequence[Run]) -> Steps:
        """Return the reads of unloaders, in the order of words, while other runs go on."""
        bank, address = self.located(runs, self._received)
        own = self._own_memories[bank] & (address >= 0)
        counts = [(self._received(run).address.shape[1], run.length) for run in runs]
        there, index = np.ones_like(address), of_runs([self._index(*each) for each in counts])
        flits = of_runs([self._flits(*each) for each in counts])
        numbers = {
            "read_advance": there,
            "read_bank": np.where(own, UNKNOWN, bank),
            "read_address": np.where(own, UNKNOWN, address),
            "read_section": self.number * there,
            "read_own": own.astype(int),
            "read_index": there * index,
            KEEP: there * flits,
        }
        others = self.everywhere(section=self.number + 1, write_section=self.number + 1)
        return Steps(len(address), numbers | dict.fromkeys(LOADS, UNKNOWN * there), always=others)

    def at(self, steps: Steps, step: int) -> dict[str, Override]:
        """Return the inputs of nodes in a step of some accesses.

        In a run with an even number the receiver stalls in every odd step of a read.
        """
        if step and KEEP in steps.numbers:
            there, known = steps.numbers["read_advance"], (KEEP, *LOADS)
            numbers = {port: steps.numbers[port] for port in known}
            numbers["read_advance"] = there * (1 - step % 2 * self.waits)
            steps, step = replace(steps, numbers=numbers), 0
        return super().at(steps, step)

    def bits(self, module: str, port: str, values: IntArray) -> IntArray:
        """Return numbers as bits of a port.

        For `tkeep` the number counts valid flits, and the result has a bit for each byte.
        """
        if port != KEEP:
            return super().bits(module, port, values)
        places = np.array(self.machine.groups[module].program.inputs.get(port, []), int)
        flit = places // max(self.loader.keep_bits // self.beat, 1)
        return (flit[:, None, None] < values[None]).astype(int)

    @property
    def waits(self) -> bool:
        """True if the receiver stalls in every other step of a read."""
        return self.number % 2 == 0

    @property
    def _own_memories(self) -> BoolArray:
        """True for each memory of the core that contains the words that the node sends."""
        return np.array([memory.own for memory in self._core.rows.memories])


class StreamRuns(MemoryRuns):
    """Proofs of runs with each number, while other runs and loads change other sections."""

    access: StreamAccess

    def __init__(self, access: StreamAccess) -> None:
        super().__init__(access)
        self._sections = access.loader.facts.sections
        # Variants: one for each number, and one for runs that begin in the last cycle of another
        # run.
        self._follows = 2 * self._sections.count
        self.variants = tuple(
            Variant(number, every=number < self._sections.count)
            for number in range(self._follows + 1)
        )

    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Execute runs with a number, and return the states that they leave.

        Runs begin in the cycle after the last write. The last variant is `_prove_following`.

        Parameters
        ----------
        runs : sequence of Run
            The runs, all executed at once.
        rest : Snapshot
            The idle state from which they start.
        variant : int
            The number of the runs; or the number after the last, for runs that follow without a
            pause.
        compares : bool
            True to read and compare the received words.
        """
        if variant == self._follows:
            return self._prove_following(runs, rest)
        cycles, access, number = self.prepare(runs), self.access, variant
        access.number, rest = number, spread(rest, len(runs))
        access.answer = access.loader.port.answer * (1 + access.waits)
        writes, buffers = access.writes(runs), self._sections.buffers
        begin = self.written(rest, writes, writes.count)
        self._disturb(begin, range(number - buffers + 1, number), [number, number + 1])
        ahead = [access.at(self._loads(number + k), 0) for k in range(buffers)]
        late = self._late_inputs(runs)
        meanwhile = Meanwhile(
            driven=lambda cycle: late if not cycle or access.always_last else {},
            overrides=lambda cycle: ahead[cycle % len(ahead)],
            look=lambda cycle: self._look(runs, cycles, cycle),
        )
        now, left = self.carry_out(runs, cycles, with_arrays(begin, [*arrays(rest)]), meanwhile)
        if compares:
            # Before a run is unloaded, as many others may follow as there are other buffers.
            loads = range(number, number + buffers + 2)
            now = unchanged(self.rested(now), left)
            self._disturb(now, range(number + 1, number + buffers), loads)
            self.read(runs, cycles, self._anything(now, number + 1))
        return of_all(left, len(runs))

    def _late_inputs(self, runs: Sequence[Run]) -> dict[str, IntArray]:
        """Return the last flit of a block as an input, if it is driven after the start."""
        late = self.access.always_last or len(self.program.forms) > 1
        return self.starts.numbers(self.access.last_flits(runs) if late else {})

    def _prove_following(self, runs: Sequence[Run], rest: Snapshot) -> Snapshot:
        """Execute runs that begin in the last cycle of other runs, of each mode and length."""
        firsts = [run for run in runs if not run.root and not run.operation] or runs[:1]
        size = max(1, AT_ONCE // (self.program.topology.nodes * len(runs)))
        left = []
        for at in range(0, len(firsts), size):
            pairs = [*product(firsts[at : at + size], runs)]
            before, after = zip(*pairs, strict=True)
            left += [self._follow(before, after, rest, known) for known in range(2)]
        return reduce(with_either, left)

    def _follow(
        self, firsts: Sequence[Run], runs: Sequence[Run], rest: Snapshot, known: int
    ) -> Snapshot:
        """Execute each run from the last cycle of another run; all first runs end in one cycle.

        The words of either the first or the second runs are compared; the words of the others are
        unknown.

        Parameters
        ----------
        known : int
            0 to compare the words of the first runs, 1 for those of the second.
        """
        machine, access, rest = self.machine, self.access, spread(rest, len(runs))
        last, now = self.prepare(firsts) - 1, rest
        for number, each in enumerate((firsts, runs)):
            access.number = number
            writes = access.writes(each)
            if number != known:
                writes = replace(writes, words={})
            now = self.written(now, writes, writes.count)
        access.number, now = 0, with_arrays(now, [*arrays(rest)])
        driven = self.starts.of(firsts) | self._late_inputs(firsts)
        for cycle in range(last.max() + 1):
            begins = (cycle == last.max() - last).astype(int)
            machine.settle(now, driven | {access.net("start"): begins[None]})
            now = machine.after(now)
        access.number, access.unshown = 1, 1
        cycles = np.array([self.program.cycles(run.length, mode=run.mode) for run in runs])
        late = self._late_inputs(runs)

        def look(cycle: int) -> None:
            if cycle < 0:  # the last cycle of the run before
                machine.choose([run.operation for run in runs])
            self._look(runs, cycles, cycle)

        meanwhile = Meanwhile(
            driven=lambda cycle: late if not cycle or access.always_last else {}, look=look
        )
        now, left = self.carry_out(runs, cycles, now, meanwhile)
        access.unshown, now = 0, unchanged(self.rested(now), left)
        access.number = known
        access.answer = access.loader.port.answer * (1 + access.waits)
        self.read(runs if known else firsts, cycles, self._anything(now, known + 1))
        return of_all(left, len(runs))

    def _loads(self, number: int, **others: int) -> Steps:
        """Return steps in which loaders do anything to a message, unless its run is executed."""
        enable = 0 if number == self.access.number else UNKNOWN
        always = self.access.everywhere(write_section=number, **others)
        return Steps(0, {}, always=always, otherwise=dict.fromkeys(LOADS, enable))

    def _look(self, runs: Sequence[Run], cycles: IntArray, cycle: int) -> None:
        """Check the cycles in which the sequencer announces the end of a run."""
        if cycle < 0:
            return
        lead = self.access.leads(runs)
        for signal, wanted in (
            # No run ends in its first cycle.
            ("ends", (cycle == cycles - 1 - lead) & (cycle > 0)),
            ("ending", cycle == cycles - 2),
            ("idle", cycle >= cycles - 1),
        ):
            self.check(runs, cycle, signal, wanted)

    def _anything(self, now: Snapshot, number: int) -> Snapshot:
        """Return a state with the memories of another one, in which nodes use the section of a run.

        All other registers are unknown.
        """
        machine, access = self.machine, self.access
        known = machine.unknown()
        for _ in range(SETTLED):
            machine.settle(known, {}, access.at(self._loads(number, section=number), 0))
            known = machine.after(known)
        return with_arrays(now, [*arrays(known)])

    def _disturb(self, now: Snapshot, runs: Iterable[int], loads: Iterable[int]) -> None:
        """Change a state as some other runs and loads may: unknown values in their sections.

        All registers except the section number are unknown, so one cycle covers any number of
        cycles.
        """
        machine, access = self.machine, self.access
        for number in runs:
            anything = self._anything(now, number)
            for load in loads:
                loading = access.at(self._loads(load, section=number), 0)
                machine.settle(anything, {}, loading)
                machine.after(anything)
