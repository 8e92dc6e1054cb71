"""Runs of a fabric whose nodes load and unload messages while others are under way.

Messages and runs have numbers modulo twice the sections of the memories. The lowest bits of the
number are the section; what a node gets from itself lies apart for each number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np

from ..program.timing import WRITE
from ..rtl.flit_rows import FlitRows
from ..rtl.multiplexer import select_code
from ..rtl.streams.packets import KEPT, Packets, packets_received, packets_sent
from ..topology import BoolArray, IntArray
from .accesses import Access, Steps, of_runs
from .memory_runs import MemoryRuns
from .messages import Locations, Run, in_beats, received_locations, sent_locations
from .report import refuted
from .runs import Meanwhile, Variant
from .snapshot import Snapshot, arrays, of_all, spread, unchanged, with_arrays
from .symbols import UNKNOWN

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.streams.endpoint import StreamEndpoint
    from .machine import Machine, Override

__all__ = ["StreamAccess", "StreamRuns"]


class StreamAccess(Access):
    """Every node has a loader and an unloader of its own.

    Attributes
    ----------
    sections : Sections
        Of memories.
    number : int
        Of the message that is written, and of the run that is read.
    """

    #: The memory gives a word with the first edge, the choice of the memory with the second.
    answer = 2

    resets = MappingProxyType({"clear": 1})
    begins = MappingProxyType({"run_begins": 1})
    until_reset = 1
    follows = 1
    unshown = 1

    def __init__(self, fabric: Fabric, machine: Machine) -> None:
        super().__init__(fabric, machine)
        self._endpoints = {
            module: cast("StreamEndpoint", fabric.netlist.modules[module[len(fabric.prefix):]]())
            for module in self.nodes
        }  # fmt: skip
        streams = next(iter(self._endpoints.values())).ends
        self.answer += streams.unloader.late
        self._own, self.sections = streams.own, streams.sections
        places = fabric.image.places if fabric.room else ()
        self.forms = [place.number for place in places] or range(len(self.program.forms))
        self.number = 0

    def idle(self) -> dict[str, IntArray]:
        """What drives nets of the top while nobody writes and no run begins."""
        writes = ("write_enable_", "write_kept_")
        names = [name for name in self.machine.text.nets if name.startswith(writes)]
        return dict.fromkeys([*names, "run_begins", "over", "clear"], np.array([[0]]))

    def writes(self, runs: Sequence[Run]) -> Steps:
        """What loaders write of the messages of the nodes that have any."""
        memory, address = self.located(runs, self._sent, ends_at_once=True)
        bank = np.full(len(self.program.memories) + 1, -1)
        bank[list(self._own)] = np.arange(len(self._own))
        sends = np.stack([self._sends(run) for run in runs], axis=-1)
        itself, index = zip(*map(self._itself, runs), strict=True)
        there = sends & (address >= 0)
        numbers = {
            "write_enable": there.astype(int),
            "write_kept": (sends & (of_runs(itself, ends_at_once=True) == 1)).astype(int),
            "write_bank": bank[memory],
            "write_address": address,
            "write_index": of_runs(index, ends_at_once=True),
        }
        return Steps(
            len(address),
            numbers,
            {"write_data": self.sent(runs)},
            always={"write_section": self._everywhere(self.number)},
            otherwise={"write_enable": 0, "write_kept": 0},
        )

    def _row(self, address: IntArray, packets: Packets) -> IntArray:
        """The row of each address of a memory whose rows are beats; -1 for none."""
        return np.where(address < 0, -1, FlitRows(self.beat, packets.pitch).split(address)[0])

    def _sent(self, run: Run) -> Locations:
        """Where each word lies that each node sends."""
        place = sent_locations(self.program, run)
        packets = packets_sent(self.program, run.form(self.program))
        return replace(place, address=self._row(place.address, packets))

    def _sends(self, run: Run) -> BoolArray:
        """The nodes that send anything."""
        packets = packets_sent(self.program, run.form(self.program))
        if packets.at_root:
            at_root: BoolArray = self.program.modes[run.mode].groups.position == run.root
            return at_root
        return packets.there

    def _itself(self, run: Run) -> tuple[IntArray, IntArray]:
        """Of each node and beat: whether it is for the node itself, its number in its packet."""
        itself, index = (
            in_beats(values, run.length, self.beat)[..., 0] for values in self._of_itself(run)
        )
        return itself, index // self.beat

    def _of_itself(self, run: Run) -> tuple[IntArray, IntArray]:
        """The same of each word."""
        part, mode = self.program.part(run.form(self.program)), self.program.modes[run.mode]
        words = np.arange(part.layout.send_words(run.length))
        if not part.schedule.collective.personal:
            shape = self.program.topology.nodes, len(words)
            itself = np.full(shape, int(not part.schedule.collective.local))
            return itself, np.broadcast_to(words, shape)
        packet, index = np.divmod(words, run.length)
        itself = (mode.groups.position[:, None] == packet).astype(int)
        if part.schedule.collective.local:
            itself = 0 * itself
        return itself, np.broadcast_to(index, itself.shape)

    def reads(self, runs: Sequence[Run]) -> Steps:
        """What unloaders read of what nodes have received, in the order of its words."""
        memory, address = self.located(runs, self._received)
        code = np.full_like(memory, -1)
        for module, endpoint in self._endpoints.items():
            nodes, order = self.nodes[module], endpoint.unloaded
            for index, number in enumerate(order):
                here = memory[:, nodes] == number
                code[:, nodes] = np.where(here, select_code(len(order), index), code[:, nodes])
        advance = np.ones_like(address)
        return Steps(
            len(address),
            {"read_advance": advance, "read_code": code, "read_address": address},
            # Flits that are not part of a packet are compared with nothing.
            always={
                "read_section": self._everywhere(self.number),
                "read_full": np.full(self.program.topology.nodes, (1 << self.beat - 1) - 1),
            },
            otherwise={"read_advance": 1},
        )

    def _received(self, run: Run) -> Locations:
        """Where each word lies that each node receives."""
        place = received_locations(self.program, run)
        packets = packets_received(self.program, run.form(self.program))
        words = np.arange(place.address.shape[1])
        packet, index = np.divmod(words, len(words) // packets.count)
        row = np.full_like(packet, run.root) if packets.by_root else packet
        kept = packets.memory[:, row, 0] == KEPT
        memory = np.where(kept, KEPT, np.where(place.address >= 0, place.memory, -1))
        address = self._row(place.address, packets)
        return Locations(memory, np.where(kept, index // self.beat, address))

    def meanwhile(self, *, number: int) -> Steps:
        """Loaders may do anything with a message of a number."""
        return Steps(0, {}, always={"write_section": self._everywhere(number)},
                     otherwise={"write_enable": -1, "write_kept": -1})  # fmt: skip

    def pause(self) -> Steps:
        """The receiver waits."""
        return Steps(0, {}, always={"write_section": self._everywhere(self.number + 1)},
                     otherwise={"read_advance": 0})  # fmt: skip

    def _everywhere(self, number: int) -> IntArray:
        return np.full(self.program.topology.nodes, number % (2 * self.sections.count))


class StreamRuns(MemoryRuns):
    """Runs of each number; loaders and unloaders of others do anything meanwhile."""

    access: StreamAccess

    def __init__(self, access: StreamAccess) -> None:
        super().__init__(access)
        self._sections = sections = access.sections
        # How many runs ahead a message may be that is loaded while a run is under way.
        self._ahead = range(1, sections.buffers)
        self.variants = tuple(
            Variant(number, every=number < sections.count) for number in range(2 * sections.count)
        )
        # The bits of the register of a node that names the section that the run under way uses.
        self._bits = (
            ["section"] if sections.bits == 1 else [f"section[{k}]" for k in range(sections.bits)]
        )

    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Carry out runs of a number."""
        cycles = self.prepare(runs)
        access = self.access
        access.number = variant
        begin = self._with_section(spread(rest, len(runs)), variant - 1)
        writes = access.writes(runs)
        begin = self.written(begin, writes, writes.count + WRITE)
        resting = self._with_section(spread(rest, len(runs)), variant - 1)
        begin = self.settled(resting, begin)
        loading = [self._loading(variant + ahead) for ahead in self._ahead]
        meanwhile = Meanwhile(overrides=lambda cycle: loading[cycle % len(loading)])
        now, left = self.carry_out(runs, cycles, begin, meanwhile)
        # Check that all nodes have turned to the section of the run.
        number = self.access.number
        for module in self.access.nodes:
            for place, bit in self._registers(module):
                if (left.states[module].flops[place] != number >> bit & 1).any():
                    section = number % self._sections.count
                    what = f"{module} must use section {section} in this run"
                    raise refuted("whole runs", self._bits[bit], what)
        if compares:
            now = unchanged(self.rested(now), left)
            self._survive(now)
            self._compare_all(runs, cycles, now)
        return of_all(left, len(runs))

    def _loading(self, number: int) -> dict[str, Override]:
        """What drives nets while loaders do anything with a message."""
        return self.access.at(self.access.meanwhile(number=number), 0)

    def _registers(self, module: str) -> Iterator[tuple[int, int]]:
        """Where the bits of the section are among the registers of a node, and which they are."""
        names = self.machine.groups[module].program.names
        for k, name in enumerate(self._bits):
            if name in names:
                yield names.index(name), k

    def _with_section(self, now: Snapshot, number: int) -> Snapshot:
        """A state in which all nodes use the section of a run."""
        found = with_arrays(now, [values.copy() for values in arrays(now)])
        for module in self.access.nodes:
            for place, bit in self._registers(module):
                found.states[module].flops[place] = number >> bit & 1
        return found

    def _survive(self, now: Snapshot) -> None:
        """Let loaders, and the runs after this one, do anything that they may, in place.

        Nothing is known of registers but the section, so that what one cycle leaves all will.
        """
        machine, number = self.machine, self.access.number
        # Until what it has brought is unloaded, as many runs follow as there are other buffers.
        for later in range(1, 2 * self._sections.buffers - 1):
            loading = self._loading(number + later)
            machine.settle(now, self.access.given(), loading, only=self.access.nodes)
            machine.after(now)
        machine.nets[3:] = UNKNOWN
        machine.nets[machine.numbers_of("run_begins")] = 0
        forgotten = with_arrays(now, [np.full_like(values, UNKNOWN) for values in arrays(now)])
        for run in range(number + 1, number + self._sections.buffers):
            anything = self._with_section(forgotten, run)
            for ahead in self._ahead:
                machine.settle(anything, {}, self._loading(run + ahead), only=self.access.nodes)
                machine.after(anything)

    def _compare_all(self, runs: Sequence[Run], cycles: IntArray, now: Snapshot) -> None:
        """Unload, and compare; the receiver waits before every word."""
        machine, access = self.machine, self.access
        reads, pause = access.reads(runs), access.at(access.pause(), 0)
        expected = self.expected(runs)
        machine.settle(now, self.access.given())
        machine.forget_words()
        for step in range(reads.count + access.answer):
            for asked in (pause, access.at(reads, step)):
                machine.settle(now, self.access.given(), asked, only=access.nodes)
                if step >= access.answer:
                    self.compare_step(runs, cycles, expected, step - access.answer)
                now = machine.after(now)
