"""The store of a node: its memories, the readers in front of injection ports, and its memory port.

While no run is under way the memory port writes and reads. What it writes reaches the memories as
it is: `busy` alone says whose address and word a memory is given. With `concurrent` the port has a
read copy of each memory of received words, and writes memories that no run writes, so that both are
used at the same time, in different sections.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from operator import or_
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ...collective import combine_in_tree
from ..memories import (
    Cell,
    ReadPort,
    WritePort,
    add_memory,
    fitting,
    look_up,
    memory_cell,
)
from ..modules import apart, delayed
from ..multiplexer import bit_count, extended, select_code
from ..operator_unit import add_pair
from .memory_port import STAGE_INPUTS, MemoryPort, PortSignals
from .part import LocalWord, NodeInputs, NodePart, NodeSettings, operator_code_input
from .places import Bit, Place
from .store_plan import Address, Arrival, Bank, Copy, Reader, StoreShape

__all__ = ["StoreModule"]

#: Memories among which the memory port chooses by one cascade: of more, wide multiplexers that some
#: devices have take fewer look-up tables.
SMALL = 6

#: What reads a memory of one word, which is there all the time.
NO_READ = ReadPort(Const(0, 1), Const(0, 1))

#: The bit of words that are stored in all rows.
ALWAYS = Bit(Place.CONSTANT, 1)


class CellBits(NamedTuple):
    """The bits of a memory cell that hold the words of a memory.

    Parameters
    ----------
    name : str
        The name of the cell in its module.
    low : int
        The first of the bits.
    width, depth : int
        Bits of a word of the cell, and its words: those of all sections, one after another.
    parts : int
        Parts of a word that are written one by one.
    """

    name: str
    low: int
    width: int
    depth: int
    parts: int


def bank_name(bank: Bank, copy: int) -> str:
    """Return the name of the cell of a copy of a bank."""
    return f"bank_{bank.members[0]}" + (f"_copy_{copy}" if copy else "")


class StoreModule(NodePart):
    """The store of a node.

    Members
    -------
    busy : In(1)
        High while a run is under way, a cycle before that counts; left out where runs and the
        memory port share nothing.
    section : In
        The section of the run, if there are several.
    operator_code : In
        The control bits of the operator, if words are combined, or the neutral word needs them.
    write_.., read_.. : In
        The memory port; see `MemoryPort`.
    read_data : Out(width)
        The word that is read; 0 unless a read was enabled.
    inject : Out(injections * width)
        The word of each injection port.

    Attributes
    ----------
    banks : dict of int to (list of CellBits)
        The back door: where the words of each memory are, in all copies.
    cells : dict of str to Cell
        The memory cells, by name.
    """

    def __init__(
        self,
        shape: StoreShape,
        port: MemoryPort,
        inputs: NodeInputs,
        settings: NodeSettings,
        *,
        words: int,
        many: bool,
    ) -> None:
        self.shape, self._port, self._many = shape, port, many
        width = settings.width
        combines = any(len(readers) > 1 for readers in shape.injections)
        self.banks = self._plan_cells(width)
        members: dict[str, Member] = {
            "busy": In(int(self._shares_ports())),
            "section": In(port.section_bits),
        }
        members |= operator_code_input(settings, neutral=True, combines=combines)
        members |= {name: In(bits) for name, bits in port.inputs.items()}
        injections = max(len(shape.injections), 1)
        members |= {"read_data": Out(width), "inject": Out(injections * width)}
        super().__init__(inputs, settings, {"rx": words}, members)
        self.read_data = Signal(width, reset_less=True, name="read_data")
        self.cells: dict[str, Cell] = {
            bits.name: memory_cell(bits.name, width=bits.width, depth=bits.depth, parts=bits.parts)
            for copies in self.banks.values()
            for bits in copies
        }
        self._words_of: dict[tuple[int, int], Value] = {}
        self._shown: dict[int, Value] = {}
        self._addresses: dict[object, Value] = {}

    def _plan_cells(self, width: int) -> dict[int, list[CellBits]]:
        """Return where the words of each memory are."""
        sections = self._port.sections
        return {
            member: [
                CellBits(
                    bank_name(bank, copy),
                    place * width,
                    len(bank.members) * width,
                    bank.size * sections if sections > 1 else bank.depth,
                    len(bank.members) if bank.own else 1,
                )
                for copy in range(len(bank.copies))
            ]
            for bank in self.shape.banks
            for place, member in enumerate(bank.members)
        }

    def _shares_ports(self) -> bool:
        """Return True if runs and the memory port share a port of a memory, or a reader."""
        return self.shape.port_reader is not None or any(
            (bank.own and bank.arrivals)
            or (cell.depth > 1 and (copy.address is not None or not copy.shown))
            for bank in self.shape.banks
            for copy, cell in zip(bank.copies, self.banks[bank.members[0]], strict=True)
        )

    def build(self) -> None:
        """Build memories, readers, and the memory port."""
        for bank in self.shape.banks:
            self._add_bank(bank)
        read = [self._read(number, reader) for number, reader in enumerate(self.shape.readers)]
        for number, readers in enumerate(self.shape.injections):
            word = self._combined([read[reader] for reader in readers], number)
            self.m.d.comb += self.inject.word_select(number, self.settings.width).eq(word)
        self._show(read)

    def word(self, word: LocalWord) -> Value:
        """Return a word, or the word of the cycle before."""
        if word.injected:
            return self.inject.word_select(word.position, self.settings.width)
        return super().word(word)

    # Addresses

    def _in_section(self, address: Value, bank: Bank, section: str) -> Value:
        """Return an address within a section of a bank."""
        bits = (bank.size - 1).bit_length()
        if not self._port.section_bits:
            return fitting(address, max(bits, 1))
        where = self.here(section) if section == "section" else self.value(section)
        return Cat(fitting(address, bits), where)

    def _early_address(self, address: Address | None) -> Value:
        """Return an address of the run a cycle before it counts."""
        if address is None:
            return Const(0, 1)
        if address.column is not None:
            return self.value(self.inputs.addresses[address.column])
        first = Cat(*map(self.early_bit, address.first))
        if address.counter is None:
            return first
        return first + self.value(f"word_{address.counter}")

    def _run_address(self, address: Address | None, bank: Bank) -> Value:
        """Return an address of the run, in a register that all banks share."""
        if address is None:
            found: Value = Const(0, 1)
        elif address.column is not None:
            found = self.here(self.inputs.addresses[address.column])
        elif not address.early:
            found = self.number(address.first)
            if address.counter is not None:
                found = found + self.here(f"word_{address.counter}")
        else:
            early = self._early_address(address)
            found = self._register(early, f"address_of_{len(self._addresses)}", address)
        return self._in_section(found, bank, "section")

    def _register(self, value: Value, name: str, key: object) -> Value:
        """Return a register of this node for a value; there is one for a key."""
        if key not in self._addresses:
            self._addresses[key] = apart(self.m, value, name=name)
        return self._addresses[key]

    @cached_property
    def _asked(self) -> PortSignals:
        """The signals of the memory port."""
        written = [number for bank in self.shape.banks if bank.own for number in bank.members]
        return self._port.signals(self, written)

    @property
    def _busy(self) -> Value:
        """The signal that says whose address memories are given."""
        return self.here("busy")

    # Memories

    def _add_bank(self, bank: Bank) -> None:
        """Add the copies of a bank."""
        write = self._write(bank)
        for copy, of_copy in enumerate(bank.copies):
            name, cell = bank_name(bank, copy), self.banks[bank.members[0]][copy]
            word = add_memory(
                self.m,
                name,
                self.cells[name],
                write=write,
                read=self._read_port(bank, of_copy) if cell.depth > 1 else NO_READ,
                many=self._many,
            )
            for place, member in enumerate(bank.members):
                part = word.word_select(place, self.settings.width)
                self._words_of[member, copy] = part
                if of_copy.shown:
                    self._shown[member] = part

    def _read_port(self, bank: Bank, copy: Copy) -> ReadPort:
        """Return the read port of a copy of a bank, of several words."""
        if not copy.shown:
            return ReadPort(self._run_address(copy.address, bank), self._busy)
        asked, asks = self._in_section(self._asked.address, bank, "read_section"), self._asked.asks
        if copy.address is None:
            return ReadPort(asked, asks)
        address = self._run_address(copy.address, bank)
        if not self._port.passes(copy.address):
            address = Mux(self._busy, address, asked)
        return ReadPort(address, asks if isinstance(asks, Const) else self._busy | asks)

    def _write(self, bank: Bank) -> WritePort:
        """Return the write port of a bank: words that arrive, and words of the memory port."""
        enable: Value = Const(0, 1)
        address: Value = Const(0, 1)
        data: list[Value] = [Const(0, self.settings.width)] * len(bank.members)
        if bank.arrivals:
            enable, address, data = self._arriving(bank)
        if not bank.own:
            return WritePort(address, Cat(*data), enable)
        given, layout = self._asked.word, self._port.memories[bank.members[0]].layout
        asked = self._in_section(self._asked.layouts[layout], bank, "write_section")
        if not bank.arrivals:
            address, data = asked, [given] * len(data)
        else:
            assert not self._port.concurrent, "no memory is written by runs and the port at once"
            address = Mux(self._busy, address, asked)
            data = [Mux(self._busy, word, given) for word in data]
        loads = [enable | self._asked.loads[member] for member in bank.members]
        return WritePort(address, Cat(*data), Cat(*loads))

    def _arriving(self, bank: Bank) -> tuple[Value, Value, list[Value]]:
        """Return the write enable, the address and the words that a bank stores in a run.

        Where words arrive by links of several lengths, the strobe of one says a cycle before whose
        address and select bits count: one multiplexer serves all.
        """
        number, arrivals = bank.members[0], bank.arrivals
        acts = [self._acts(arrival) for arrival in arrivals]
        enable: Value = self._enable(arrivals, acts, number)
        if len(arrivals) == 1:
            address = self._run_address(arrivals[0].address, bank)
        else:
            early = self._early_address(arrivals[0].address)
            for act, arrival in zip(acts[1:], arrivals[1:], strict=True):
                early = Mux(act, self._early_address(arrival.address), early)
            early = fitting(early, max((bank.size - 1).bit_length(), 1))
            held = self._register(early, f"stores_at_{number}", ("stores at", number))
            address = self._in_section(held, bank, "section")
        words = []
        for place, (member, choice) in enumerate(zip(bank.members, bank.words, strict=True)):
            codes = [[self.early_bit(bit) for bit in each.codes[place]] for each in arrivals]
            code = Cat(*codes[0])
            if len(arrivals) > 1:
                gated = [[act & bit for bit in each]
                         for act, each in zip(acts, codes, strict=True)]  # fmt: skip
                code = Cat(*(reduce(or_, bits) for bits in zip(*gated, strict=True)))
            inputs = [self.word(word) for word in choice.words]
            words.append(self.select_by(code, inputs, f"to_memory_{member}", branched=False))
        return enable, address, words

    def _acts(self, arrival: Arrival) -> Value:
        """Return a signal that is high a cycle before a word of an arrival is stored."""
        strobe = self.value(f"valid_{arrival.strobe}")
        if arrival.enable == ALWAYS:
            return strobe
        return self.early_bit(arrival.enable) & strobe

    def _enable(self, arrivals: Sequence[Arrival], acts: list[Value], number: int) -> Value:
        """Return the write enable of a bank during runs."""
        if len(arrivals) == 1 and arrivals[0].enable == ALWAYS:
            return self.here(f"valid_{arrivals[0].strobe}")
        key = tuple((arrival.enable, arrival.strobe) for arrival in arrivals)
        return self._register(reduce(or_, acts), f"store_{number}", key)

    # Readers

    def _read(self, number: int, reader: Reader) -> Value:
        """Return the word of a reader."""
        words = [
            self.neutral() if word.position < 0 else self._words_of[reader.inputs[word.position]]
            for word in reader.choice.words
        ]
        code = Cat(*map(self.early_bit, reader.choice.bits))
        if number == self.shape.port_reader:
            memories = [memory for memory, _ in reader.inputs]
            code = Mux(self._busy, code, self._asked_code([[each] for each in memories]))
        return self.select_by(code, words, f"of_reader_{number}", branched=False)

    def _combined(self, words: list[Value], injection: int) -> Value:
        """Return the word of an injection port: its readers' words, combined in a tree."""
        if not words:
            return Const(0, self.settings.width)
        late, unit = self.shape.injection_delay, self.settings.unit
        if len(words) == 1:
            return delayed(self.m, words[0], late)
        assert unit is not None
        names = iter(range(len(words)))

        def combine(*pair: Value) -> Value:
            assert unit is not None
            name = f"{injection}_{next(names)}" if self.alone else None
            return add_pair(self.m, unit, pair, self.run_operator(), name=name)

        word = combine_in_tree(words, combine, lambda word: delayed(self.m, word, unit.latency))
        return delayed(self.m, word, late - unit.latency * (len(words) - 1).bit_length())

    # The memory port

    def _show(self, read: list[Value]) -> None:
        """Show the word that the memory port asked for, 0 if it did not ask."""
        banks = [number for number in self.shape.received if number in self._shown]
        if not banks:
            return
        late = self._port.stages - 1
        if self.shape.port_reader is not None:
            word = delayed(self.m, read[self.shape.port_reader], late)
        elif late:
            word = self._shown_in_stages(banks)
        else:
            word = self._shown_of(banks)
        asks = self._asked.asks
        if not isinstance(asks, Const):
            # A register holds what resets the word, with nothing in between.
            silent = delayed(self.m, ~asks, 1 + late, "silent")
            word = Mux(silent, 0, word)
        self.m.d.sync += self.read_data.eq(word)

    def _shown_of(self, banks: list[int]) -> Value:
        """Return the word that the memory port asks for, if it is in one of some banks."""
        words = [self._shown[bank] for bank in banks]
        code = self._asked_code([[bank] for bank in banks])
        small = len(words) <= SMALL
        return self.select_by(code, words, f"read_of_{banks[0]}", branched=False, small=small)

    def _shown_in_stages(self, banks: list[int]) -> Value:
        """Return the word that the memory port asks for, from one cascade with a register in it.

        The first stages take four banks, those behind the register a word each: one bank, or a
        group of banks if there are many.
        """
        first, rest = banks[:STAGE_INPUTS], banks[STAGE_INPUTS:]
        size = 1 if len(rest) <= STAGE_INPUTS else STAGE_INPUTS
        groups = [rest[at : at + size] for at in range(0, len(rest), size)]
        code = self._asked_code([*([bank] for bank in first), *groups])
        used, words = bit_count(len(first)), [self._shown[bank] for bank in first]
        held = self.select_by(code[:used], words, "read_of_first", branched=False, small=True)
        later = [delayed(self.m, self._shown_of(group), 1) for group in groups]
        return extended(
            self.m,
            delayed(self.m, held, 1),
            later,
            delayed(self.m, code[used:], 1),
            name="read_of_rest",
            sliced=self.alone,
        )

    def _asked_code(self, groups: list[list[int]]) -> Value:
        """Return the select bits of the group of banks that has what the memory port asks for."""
        if len(groups) < 2:
            return Const(0, 0)
        asked, codes = self._asked.bank, []
        for number in range(1 << len(asked)):
            # Any bank will do for other numbers: one that differs in a bit, so that few matter.
            near = [number, *(number ^ 1 << bit for bit in range(len(asked)))]
            found = (k for each in near for k, group in enumerate(groups) if each in group)
            codes.append(select_code(len(groups), next(found, 0)))
        return fitting(look_up(codes, asked), bit_count(len(groups)))
