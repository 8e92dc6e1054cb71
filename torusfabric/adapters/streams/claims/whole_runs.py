"""Proof of whole runs, from the outputs of loaders to the words that unloaders read.

The loader of a node writes sent packets into memories, the unloader reads received ones. Each
memory is divided into *sections*, one for each of some consecutive runs. The *own block* is a
memory for words that a node sends to itself. A *buffer* is the space for one message, or for the
received words of one run.

The proof executes the emitted core symbolically. Loaders and unloaders are replaced by the writes
and reads that are proved of them. A run has a number, modulo twice the number of sections. The
lowest bits of the number are the section; one further bit distinguishes messages in the own block
of a node. While run s is loaded, executed and unloaded, other messages are loaded and other runs
are executed. The proof lets these write unknown values into their own sections at any time. With B
buffers they are::

    phase of run s       other runs and loads that write
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

from ....proof.accesses import AccessSteps, NodeAccess, stack_runs
from ....proof.memory_runs import MemoryRuns
from ....proof.messages import Locations, Run, group_by_beats
from ....proof.runs import MOST_NODE_RUNS, Environment, StartTiming
from ....proof.snapshot import (
    Snapshot,
    copy_to_runs,
    cover_both,
    cover_runs,
    forget_changes,
    register_arrays,
    with_register_arrays,
)
from ....proof.symbols import UNKNOWN
from ....rtl.netlist import Part, Role
from ....topology import BoolArray, IntArray

if TYPE_CHECKING:
    from ....proof.machine import Override, SymbolicMachine
    from ....rtl import Fabric
    from ..engine import EngineShape

__all__ = ["StreamAccess", "StreamRuns"]

#: Cycles from the start of a run until all nodes have its section number.
SETTLE_CYCLES = 4

#: The write enables, and the port that tells which bytes of a word are valid.
WRITE_ENABLES, KEEP = ("write_enable", "own_enable"), "tkeep"


class StreamAccess(NodeAccess):
    """The reads and writes of node memories, as the proof of whole runs makes them.

    In the fabric, the loader of a node writes its message into memories, and the unloader of a node
    reads the received words. The proof of whole runs does not simulate loaders and unloaders: it
    drives the signals that these would drive.

    Attributes
    ----------
    loader : EngineShape
        Parameters of the loaders.
    number : int
        Number of the run that is executed.
    lead : int
        The core announces the end of a run by its output `ends`, `lead` cycles before the last
        cycle of the run.
    """

    port, refuses, follows = "tdata", False, 1

    #: True if the number of the last flit of a block is driven all the time, not only with a start.
    always_last = False

    def __init__(self, fabric: Fabric, machine: SymbolicMachine) -> None:
        super().__init__(fabric, machine)
        self._core = fabric.core
        self._outlets: dict[str, list[int]] = {
            module: [int(name.rsplit("_", 1)[1]) for name in group.names]
            for module, group in machine.groups.items()
            if fabric.netlist.roles.get(module.removeprefix(fabric.prefix)) is Role.OUTLET
        }
        self.nodes = self.nodes | self._outlets
        self.loader: EngineShape = fabric.netlist.modules["loader"]().shape
        self.answer, self.number = self.loader.memory_port.read_cycles, 0
        self.lead = self._core.run_port.lead
        sequencer = next(iter(fabric.netlist.instances_with_role(Role.SEQUENCER)))
        # Each value that is sampled with a start comes from one net.
        inputs = sequencer.inputs.items()
        self._nets = {name: part.net for name, (part,) in inputs if isinstance(part, Part)}
        self._nets |= sequencer.outputs

    def top_net(self, name: str) -> str:
        """Return the name of the net at the input or output `name` of the sequencer."""
        return self._nets.get(name, name)

    @property
    def nodes_by_module(self) -> dict[str, list[int]]:
        """Dict from the name of each module that drives `tdata` of streams to its nodes."""
        return self._outlets

    def idle_access_nets(self) -> dict[str, IntArray]:
        """Return the value of each write enable in cycles without a write, by net name: 0."""
        names = [name for name in self.machine.text.nets if name.startswith(WRITE_ENABLES)]
        return dict.fromkeys(names, np.array([[0]]))

    def sampled_choices(self, runs: Sequence[Run]) -> dict[str, IntArray]:
        """Return the inputs of the core that are sampled with the start of each run, by name.

        Examples are the form, the root, and the section (the part of each memory that the run
        uses). `runs` are executed at the same time; each value is an array with a number for each
        run.
        """
        forms = [run.form_number(self.program) for run in runs]
        section = self.number % self.loader.facts.sections.n_sections
        found = {
            "entry": self.entry_numbers(forms),
            "root": np.array([run.root for run in runs]),
            "operation": np.array([run.operation for run in runs]),
            "section": np.full(len(runs), section),
        }
        several = self.always_last or len(self.program.forms) > 1
        return found if several else found | self.last_flits(runs)

    def entry_numbers(self, forms: list[int]) -> IntArray:
        """Return the numbers by which the core selects the forms of runs: `forms` itself.

        `forms` has, for each run, the number of its form in the program. A fabric with loaded
        tables has other numbers; a subclass returns them.
        """
        return np.array(forms)

    def lead_cycles(self, runs: Sequence[Run]) -> IntArray:
        """Return the number of cycles between the signal `ends` and the last cycle of each run.

        By its output `ends`, the core announces the end of a run. `runs` are executed at the same
        time; the result has one number for each.
        """
        return np.full(len(runs), self.lead)

    def sending_nodes(self, run: Run) -> BoolArray:
        """Return an array that is True for each node that sends packets.

        `run` chooses the form and the root.
        """
        form = run.form_number(self.program)
        packets, position = (
            self.loader.packets[form],
            self.program.forms[form].groups.position_of_node,
        )
        found: BoolArray = packets.has_packets & ((position == run.root) | (not packets.at_root))
        return found

    def last_flits(self, runs: Sequence[Run]) -> dict[str, IntArray]:
        """Return a dict with the number, from 0, of the last flit of a block in each of `runs`.

        The only key is ``last``, the name of an input of the core; its value is an array with a
        number for each run.
        """
        forms = [self.program.forms[run.form_number(self.program)] for run in runs]
        last = [0 if form.loop.padded else form.block_of(run.length) - 1
                for form, run in zip(forms, runs, strict=True)]  # fmt: skip
        return {"last": np.array(last)}

    def message_writes(self, runs: Sequence[Run]) -> AccessSteps:
        """Return the steps, one for each cycle, in which loaders write the messages of runs.

        A step has the outputs of loaders for one word of each node: memory and address. A word that
        a node sends to itself also has its location in a memory beside the core. `runs` are
        executed at the same time.
        """
        bank, address = self.locate_beats(runs, self._sent_locations, ends_at_once=True)
        own = stack_runs([self._own_beat_indices(run) for run in runs], ends_at_once=True)
        there = address >= 0
        numbers = {
            "write_enable": there.astype(int),
            "write_bank": bank,
            "write_address": address,
            "own_enable": (there & (own >= 0)).astype(int),
            "own_index": own,
        }
        return AccessSteps(
            len(address),
            numbers,
            {"write_data": self.message_bits(runs)},
            always=self.at_all_nodes(write_section=self.number),
            otherwise=dict.fromkeys(WRITE_ENABLES, 0),
        )

    def at_all_nodes(self, **numbers: int) -> dict[str, IntArray]:
        """Return node inputs that hold a run number: for each name, an array with one entry a node.

        `numbers` has a run number for each input. All nodes get this number modulo twice the number
        of sections, as the hardware counts runs. A section is one of several equal parts of each
        memory, which runs use in turn.
        """
        wrap, nodes = 2 * self.loader.facts.sections.n_sections, self.program.topology.nodes
        return {port: np.full(nodes, number % wrap) for port, number in numbers.items()}

    def _sent_locations(self, run: Run) -> Locations:
        """Return memory and address of each word that nodes send; address -1 for no word.

        `run` chooses form, length and root.
        """
        form = run.form_number(self.program)
        bank, address = self._core.locate_words(
            received=False, form=form, length=run.length, root=run.root
        )
        return Locations(bank, np.where(self.sending_nodes(run)[:, None], address, -1))

    def _beat_indices(self, words: int, length: int) -> IntArray:
        """Return the number of each beat in its packet, for consecutive packets of equal length.

        For two packets of 5 flits, and beats of 2 flits, it is 0, 1, 2, 0, 1, 2.

        Parameters
        ----------
        words : int
            Number of flits of all packets.
        length : int
            Flits of a packet.

        Returns
        -------
        ndarray of int, shape (1, beats)
            0, 1, .. for the beats of each packet.
        """
        index = np.arange(words)[None] % length
        return group_by_beats(index, length, self.beat)[..., 0] // self.beat

    def _flits_per_beat(self, words: int, length: int) -> IntArray:
        """Return the number of flits in each beat, shape (1, beats).

        The last beat of a packet may be shorter. `words` is the number of flits of all packets
        together, and `length` the number of flits of one packet.
        """
        return (group_by_beats(np.arange(words)[None], length, self.beat) >= 0).sum(axis=-1)

    def _own_beat_indices(self, run: Run) -> IntArray:
        """Return, for each beat that a node sends to itself, the number of the beat in its packet.

        The result has the shape (nodes, beats) of all sent beats; it is -1 for beats to other
        nodes. `run` chooses form and length.
        """
        part = self.program.part(run.form_number(self.program))
        index = self._beat_indices(words := part.layout.send_words(run.length), run.length)
        if not part.schedule.collective.personal:
            return np.repeat(index, self.program.topology.nodes, axis=0)
        packet = group_by_beats(np.arange(words)[None] // run.length, run.length, self.beat)[..., 0]
        return np.where(part.groups.position_of_node[:, None] == packet, index, -1)

    def _received_locations(self, run: Run) -> Locations:
        """Return memory and address of each word that nodes receive.

        `run` chooses form, length and root.
        """
        form = run.form_number(self.program)
        return Locations(
            *self._core.locate_words(received=True, form=form, length=run.length, root=run.root)
        )

    def message_reads(self, runs: Sequence[Run]) -> AccessSteps:
        """Return the steps, one for each beat, in which unloaders read the received words of runs.

        Meanwhile loaders may write any words into the section of the next run: their write enables
        are unknown. `runs` are executed at the same time.
        """
        bank, address = self.locate_beats(runs, self._received_locations)
        own = self._is_send_memory[bank] & (address >= 0)
        counts = [(self._received_locations(run).address.shape[1], run.length) for run in runs]
        there, index = (
            np.ones_like(address),
            stack_runs([self._beat_indices(*each) for each in counts]),
        )
        flits = stack_runs([self._flits_per_beat(*each) for each in counts])
        numbers = {
            "read_advance": there,
            "read_bank": np.where(own, UNKNOWN, bank),
            "read_address": np.where(own, UNKNOWN, address),
            "read_section": self.number * there,
            "read_own": own.astype(int),
            "read_index": there * index,
            KEEP: there * flits,
        }
        others = self.at_all_nodes(section=self.number + 1, write_section=self.number + 1)
        return AccessSteps(
            len(address), numbers | dict.fromkeys(WRITE_ENABLES, UNKNOWN * there), always=others
        )

    def endpoint_inputs(self, steps: AccessSteps, step: int) -> dict[str, Override]:
        """Return the inputs of nodes in one cycle of an access.

        A read takes several cycles, numbered by `step`, and its address is driven in the first one
        only. In runs with an even number, the receiver stalls in every second cycle, so that stalls
        are proved as well.
        """
        if step and KEEP in steps.numbers:
            there, known = steps.numbers["read_advance"], (KEEP, *WRITE_ENABLES)
            numbers = {port: steps.numbers[port] for port in known}
            numbers["read_advance"] = there * (1 - step % 2 * self.has_receiver_waits)
            steps, step = replace(steps, numbers=numbers), 0
        return super().endpoint_inputs(steps, step)

    def port_bits(self, module: str, port: str, values: IntArray) -> IntArray:
        """Return the numbers `values` as bits for the input `port` of a module of nodes.

        A number for the port `tkeep` is the count of valid flits of a word; its result has a bit
        for each byte of the word, high if the byte is valid. `module` is the name of the module.
        """
        if port != KEEP:
            return super().port_bits(module, port, values)
        places = np.array(self.machine.groups[module].program.inputs.get(port, []), int)
        flit = places // max(self.loader.keep_bits // self.beat, 1)
        return (flit[:, None, None] < values[None]).astype(int)

    @property
    def has_receiver_waits(self) -> bool:
        """True if the receiver of a stream stalls in every second cycle of a read."""
        return self.number % 2 == 0

    @property
    def _is_send_memory(self) -> BoolArray:
        """Array with an entry for each memory of the core: True for a send memory."""
        return np.array([memory.own for memory in self._core.rows.memories])


class StreamRuns(MemoryRuns):
    """Proof of whole runs with each run number, while other runs change other memory sections.

    A section is one of some equal parts of each memory, which runs use in turn. Run numbers count
    modulo twice the number of sections. At the same time, other messages are loaded and other runs
    unloaded, in other sections.
    """

    access: StreamAccess

    def __init__(self, access: StreamAccess) -> None:
        super().__init__(access)
        self._sections = access.loader.facts.sections
        # Variants: one for each number, and one for runs that begin in the last cycle of another
        # run.
        self._follows = 2 * self._sections.n_sections
        self.variants = tuple(
            StartTiming(number, every=number < self._sections.n_sections)
            for number in range(self._follows + 1)
        )

    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Execute runs with symbolic words, and return the state that they leave.

        Each run begins in the cycle after the last write of its message. If `variant` is the last
        one, each run begins in the last cycle of another run (`_prove_back_to_back`).

        Parameters
        ----------
        runs : sequence of Run
            The runs, all executed at once.
        rest : Snapshot
            The idle state from which they start.
        variant : int
            The run number, which decides the section (part of each memory) that the runs use. The
            value after the last run number is for runs that follow without a pause.
        compares : bool
            True to read and compare the received words.
        """
        if variant == self._follows:
            return self._prove_back_to_back(runs, rest)
        cycles, access, number = self.prepare_machine(runs), self.access, variant
        access.number, rest = number, copy_to_runs(rest, len(runs))
        access.answer = access.loader.memory_port.read_cycles * (1 + access.has_receiver_waits)
        writes, buffers = access.message_writes(runs), self._sections.buffers
        begin = self.write_messages(rest, writes, writes.count)
        self._disturb_state(begin, range(number - buffers + 1, number), [number, number + 1])
        ahead = [access.endpoint_inputs(self._load_steps(number + k), 0) for k in range(buffers)]
        late = self._late_inputs(runs)
        meanwhile = Environment(
            driven=lambda cycle: late if not cycle or access.always_last else {},
            overrides=lambda cycle: ahead[cycle % len(ahead)],
            look=lambda cycle: self._check_end_signals(runs, cycles, cycle),
        )
        now, left = self.execute_runs(
            runs, cycles, with_register_arrays(begin, [*register_arrays(rest)]), meanwhile
        )
        if compares:
            # Before a run is unloaded, B - 1 other runs may follow, one for each other buffer.
            loads = range(number, number + buffers + 2)
            now = forget_changes(self.resting_state(now), left)
            self._disturb_state(now, range(number + 1, number + buffers), loads)
            self.read_and_compare(runs, cycles, self._with_unknown_registers(now, number + 1))
        return cover_runs(left, len(runs))

    def _late_inputs(self, runs: Sequence[Run]) -> dict[str, IntArray]:
        """Return the core input that is driven one cycle after the start, or an empty dict.

        The input is the number of the last flit of a block. With several forms it depends on the
        form, so it follows the start by one cycle. With a single form it comes with the start, and
        the result is empty. `runs` are executed at the same time.
        """
        late = self.access.always_last or len(self.program.forms) > 1
        return self.starts.input_bits(self.access.last_flits(runs) if late else {})

    def _prove_back_to_back(self, runs: Sequence[Run], rest: Snapshot) -> Snapshot:
        """Execute pairs of runs, of which the second begins in the last cycle of the first.

        Each of `runs` is the second run of some pairs. Of `runs`, those with root 0 and operator 0
        are first runs; they include each mode and length. `rest` is the idle state between runs.
        """
        firsts = [run for run in runs if not run.root and not run.operation] or runs[:1]
        size = max(1, MOST_NODE_RUNS // (self.program.topology.nodes * len(runs)))
        left = []
        for at in range(0, len(firsts), size):
            pairs = [*product(firsts[at : at + size], runs)]
            before, after = zip(*pairs, strict=True)
            left += [self._run_back_to_back(before, after, rest, known) for known in range(2)]
        return reduce(cover_both, left)

    def _run_back_to_back(
        self, firsts: Sequence[Run], runs: Sequence[Run], rest: Snapshot, known: int
    ) -> Snapshot:
        """Execute pairs of runs, of which the second begins in the last cycle of the first.

        The starts of the first runs differ, so that all of them end in the same cycle. The received
        words of either the first or the second runs are compared; the messages of the others are
        unknown.

        Parameters
        ----------
        firsts, runs : sequence of Run
            First and second run of each pair.
        rest : Snapshot
            The idle state from which the first runs start.
        known : int
            0 to compare the words of the first runs, 1 for those of the second.
        """
        machine, access, rest = self.machine, self.access, copy_to_runs(rest, len(runs))
        last, now = self.prepare_machine(firsts) - 1, rest
        for number, each in enumerate((firsts, runs)):
            access.number = number
            writes = access.message_writes(each)
            if number != known:
                writes = replace(writes, words={})
            now = self.write_messages(now, writes, writes.count)
        access.number, now = 0, with_register_arrays(now, [*register_arrays(rest)])
        driven = self.starts.start_inputs(firsts) | self._late_inputs(firsts)
        for cycle in range(last.max() + 1):
            begins = (cycle == last.max() - last).astype(int)
            machine.settle_nets(now, driven | {access.top_net("start"): begins[None]})
            now = machine.next_state(now)
        access.number, access.unshown = 1, 1
        cycles = np.array([self.program.cycles(run.length, mode=run.mode) for run in runs])
        late = self._late_inputs(runs)

        def check_cycle(cycle: int) -> None:
            if cycle < 0:  # the last cycle of the run before
                machine.choose_operators([run.operation for run in runs])
            self._check_end_signals(runs, cycles, cycle)

        meanwhile = Environment(
            driven=lambda cycle: late if not cycle or access.always_last else {}, look=check_cycle
        )
        now, left = self.execute_runs(runs, cycles, now, meanwhile)
        access.unshown, now = 0, forget_changes(self.resting_state(now), left)
        access.number = known
        access.answer = access.loader.memory_port.read_cycles * (1 + access.has_receiver_waits)
        self.read_and_compare(
            runs if known else firsts, cycles, self._with_unknown_registers(now, known + 1)
        )
        return cover_runs(left, len(runs))

    def _load_steps(self, number: int, **others: int) -> AccessSteps:
        """Return an access in which loaders may write any words of message number `number`.

        They write into the section of this message: the part of each memory that is reserved for
        it. If `number` is the number of the run under proof, they write nothing. `others` are
        further inputs of nodes: name of the input -> run number.
        """
        enable = 0 if number == self.access.number else UNKNOWN
        always = self.access.at_all_nodes(write_section=number, **others)
        return AccessSteps(0, {}, always=always, otherwise=dict.fromkeys(WRITE_ENABLES, enable))

    def _check_end_signals(self, runs: Sequence[Run], cycles: IntArray, cycle: int) -> None:
        """Check the outputs by which the core announces the end of a run, in one cycle of runs.

        `ends` must be high some cycles before the last cycle, `ending` one cycle before it, and
        `idle` from the last cycle on. `cycles` has the number of cycles of each of `runs`.
        """
        if cycle < 0:
            return
        lead = self.access.lead_cycles(runs)
        for signal, wanted in (
            # No run ends in its first cycle.
            ("ends", (cycle == cycles - 1 - lead) & (cycle > 0)),
            ("ending", cycle == cycles - 2),
            ("idle", cycle >= cycles - 1),
        ):
            self.check_output(runs, cycle, signal, wanted)

    def _with_unknown_registers(self, now: Snapshot, number: int) -> Snapshot:
        """Return a state with the memory contents of `now`, and unknown registers.

        Only the registers with the section number are known: by them, nodes use the section (part
        of each memory) of run `number`.
        """
        machine, access = self.machine, self.access
        known = machine.unknown_state()
        for _ in range(SETTLE_CYCLES):
            machine.settle_nets(
                known, {}, access.endpoint_inputs(self._load_steps(number, section=number), 0)
            )
            known = machine.next_state(known)
        return with_register_arrays(now, [*register_arrays(known)])

    def _disturb_state(self, now: Snapshot, runs: Iterable[int], loads: Iterable[int]) -> None:
        """Write unknown values to all memory words that other runs, or loaded messages, may change.

        `runs` and `loads` are the numbers of these runs and messages. Each of them may change its
        own section (part) of each memory. One cycle is simulated for each pair of a run and a
        message. All registers except the section number are unknown in this cycle, so it covers any
        number of cycles. The memories of the state `now` are changed in place.
        """
        machine, access = self.machine, self.access
        for number in runs:
            anything = self._with_unknown_registers(now, number)
            for load in loads:
                loading = access.endpoint_inputs(self._load_steps(load, section=number), 0)
                machine.settle_nets(anything, {}, loading)
                machine.next_state(anything)
