"""The store of a node: its memories, the readers in front of injection ports, and its memory port.

::

    words that arrive --> | memories | --> readers --> operators --> inject
    memory port write --> |          | --> multiplexer --> read_data

Between runs, the memory port writes and reads. During a run, the program does. The signal `busy`
switches the address and the word of a memory between the two. A *concurrent* port works during runs
as well, in other *sections* (equal parts of each memory) than the run: it has a copy of its own of
each memory of received words, and it writes memories that no run writes.

A *bank* is one memory, or several that stand side by side with common addresses. Readers whose
addresses differ read different *copies* of a bank, and a *cell* is the storage of one copy. An
*arrival* is the set of words that reach a bank by links of one length (see `store_plan`).

If the memory port moves several flits in a cycle, it writes and reads rows of several flits. A run
writes one flit of a row, since each flit has its own write enable, and it selects one flit of each
row that it reads. Copies that only runs read have rows of one flit. The banks of a *pool* share
memories of one flit a word, its *columns* (see `store_shape.Pool`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from operator import or_
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ...collective import combine_in_tree
from ..flit_rows import FlitRows
from ..memories import (
    Cell,
    ReadPort,
    WritePort,
    add_memory,
    choose_value,
    look_up,
    memory_cell,
    resize,
)
from ..modules import delay_value, unmerged_register
from ..multiplexer import (
    LEAST_INPUTS,
    Multiplexer,
    continued_cascade,
    extended_cascade,
    make_keeper,
    plain_cascade,
    select_bit_count,
    select_code,
)
from .memory_port import STAGE_INPUTS, MemoryPort, PortSignals
from .node_module import LocalWord, NodeInputs, NodeModule, NodeSettings, operator_code_input
from .places import Bit, BitPlace
from .store_guests import Guest
from .store_shape import AddressSource, Bank, BankArrivals, Pool, Reader, StoreShape

__all__ = ["StoreModule"]

#: The memory port chooses among up to this many memories by a plain cascade. With more memories,
#: the wide multiplexers that some devices have take fewer LUTs.
MOST_IN_CASCADE = 6

#: The read port of a memory of one word, which is a register and needs no address.
NO_READ = ReadPort(Const(0, 1), Const(0, 1))

#: The value of `BankArrivals.late` for words that are stored in all rows.
ALWAYS = Bit(BitPlace.CONSTANT, 1)

#: The write enable of a memory that stores nothing.
NEVER = Const(0, 1)


class CellBits(NamedTuple):
    """The bits of a Verilog memory that hold one flit of a memory of the program.

    Memories with common addresses lie side by side in one Verilog memory, the cell.

    Parameters
    ----------
    name : str
        The name of the cell in its module.
    low : int
        The lowest bit of the flit in a word of the cell.
    width : int
        Bits of a word of the cell.
    depth : int
        Words of the cell. The sections (equal parts, one for each run under way) follow one
        another.
    base : int
        Address of the first word of the memory in the cell.
    """

    name: str
    low: int
    width: int
    depth: int
    base: int = 0


def bank_name(bank: Bank, copy: int) -> str:
    """Return the name of the Verilog memory for copy `copy` of a bank, such as ``bank_2_copy_1``.

    A bank is a set of memories with common addresses; the number behind ``bank`` is the number of
    its first memory. The first copy has no suffix.
    """
    return f"bank_{bank.members[0]}" + (f"_copy_{copy}" if copy else "")


class StoreModule(NodeModule):
    """The module of a node with its memories, its readers, and its side of the memory port.

    A reader passes, in each row of the program, the word of one memory to the router.

    Parameters
    ----------
    shape : StoreShape
        The structure of the store.
    port : MemoryPort
        The port that an adapter uses between runs.
    inputs : NodeInputs
        The control inputs.
    settings : NodeSettings
        The properties that all nodes share.
    words : int
        Number of words at the input `rx`.
    many : bool
        True if the fabric has many memories, see `add_memory`.

    Members
    -------
    busy : In(1)
        High during a run, one cycle early. Absent if runs and the memory port use different read
        and write ports of the memories.
    section : In
        The section of the run, if there are several.
    operator_code : In
        The control bits of the operator, if words are combined, or the identity word needs them.
    write_.., read_.. : In
        The memory port; see `MemoryPort`.
    read_data : Out
        The word that the memory port reads: one flit or a row; 0 if no read was enabled. A
        concurrent port keeps its last word while ``read_advance`` is low.
    inject : Out(injections * width)
        The words for the injection ports, by which they enter the router, side by side.

    Attributes
    ----------
    banks : dict of int to (list of CellBits)
        Memory number -> the bits of each of its copies. Simulations read and write memories by it.
        If the memory port moves `beat` flits, the key of flit k of the rows of memory m is ``m *
        beat + k``, and copies that only runs read are left out, and so are memories of pools.
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
        combines = any(len(readers) > 1 for readers in shape.injections)
        self.banks: dict[int, list[CellBits]] = {}
        self.cells: dict[str, Cell] = {}
        pooled = {place for pool in shape.pools for place in pool.banks}
        #: The banks that have memories of their own.
        self._single_banks = [bank for place, bank in enumerate(shape.banks) if place not in pooled]
        for bank in self._single_banks:
            for copy in range(len(bank.copies)):
                self._add_cell(bank, copy, settings)
        for pool in shape.pools:
            depth = pool.depth + (port.sections - 1) * pool.size
            for name in self._column_names(pool):
                self.cells[name] = memory_cell(name, width=settings.width, depth=depth)
        members: dict[str, Member] = {
            "busy": In(int(self._shares_ports())),
            "section": In(port.section_bits),
        }
        members |= operator_code_input(settings, neutral=True, combines=combines)
        members |= {name: In(bits) for name, bits in port.inputs.items()}
        injections = max(len(shape.injections), 1)
        members["read_data"] = Out(port.width)
        members["inject"] = Out(injections * settings.width)
        super().__init__(inputs, settings, {"rx": words}, members)
        self.read_data = Signal(port.width, reset_less=True, name="read_data")
        self._words_of: dict[tuple[int, int], Value] = {}
        self._shown: dict[int, Value] = {}
        self._turns: dict[int, int] = {}
        self._pooled: dict[int, tuple[Value, Value]] = {}
        self._selected: dict[object, Value] = {}
        self._addresses: dict[object, Value] = {}

    def _add_cell(self, bank: Bank, copy: int, settings: NodeSettings) -> None:
        """Make the Verilog memory (*cell*) for copy number `copy` of a bank.

        The bits of each memory of the bank in the cell are recorded in `banks`. `settings` has the
        width of a flit; cells are made before the module has its own settings.
        """
        name, rows, sections = bank_name(bank, copy), bank.rows_of(copy), self._port.sections
        width = len(bank.members) * rows.beat * settings.width
        depth = rows.n_rows(bank.size) * sections if sections > 1 else rows.n_rows(bank.depth)
        # The memory port writes a whole row of one member. A run writes one flit of a row, in all
        # members at once.
        parts = len(bank.members) if bank.own else 1
        if bank.arrivals or not bank.own:
            parts *= rows.beat
        self.cells[name] = memory_cell(name, width=width, depth=depth, parts=parts)
        if rows.beat < bank.rows.beat:
            return
        numbers = [member * rows.beat + k for member in bank.members for k in range(rows.beat)]
        for place, number in enumerate(numbers):
            bits = CellBits(name, place * settings.width, width, depth)
            self.banks.setdefault(number, []).append(bits)
        for guest in bank.guests:
            self.banks[guest.memory] = [CellBits(name, 0, width, depth, guest.base)]

    def _column_names(self, pool: Pool) -> list[str]:
        """Return the names of the columns of a pool, such as ``bank_2_column_0``.

        The number behind ``bank`` is that of the first memory of the pool.
        """
        first = self.shape.banks[pool.banks[0]]
        return [f"{bank_name(first, 0)}_column_{k}" for k in range(first.rows.beat)]

    def _is_register(self, bank: Bank, copy: int) -> bool:
        """Return True if copy number `copy` of a bank has one word, so that it is a register.

        A bank is a set of memories with common addresses. A register needs no address.
        """
        return bank_name(bank, copy) in self.cells and isinstance(
            self.cells[bank_name(bank, copy)], Signal
        )

    def _shares_ports(self) -> bool:
        """Return True if runs and the memory port share a port of a memory or a multiplexer.

        The module then needs the input ``busy``, which gives the shared port to the run.
        """
        return (
            self.shape.port_reader is not None
            or any(pool.accesses for pool in self.shape.pools)
            or any(
                (bank.own and bank.arrivals)
                or (copy.address is not None and not self._is_register(bank, number))
                for bank in self.shape.banks
                for number, copy in enumerate(bank.copies)
            )
        )

    def add_logic(self) -> None:
        """Build memories, readers, and the memory port."""
        for bank in self._single_banks:
            self._add_bank(bank)
        for pool in self.shape.pools:
            self._add_pool(pool)
        read = [
            self._add_reader(number, reader) for number, reader in enumerate(self.shape.readers)
        ]
        for number, readers in enumerate(self.shape.injections):
            word = self.combine_readers([read[reader] for reader in readers], number)
            self.m.d.comb += self.inject.word_select(number, self.settings.width).eq(word)
        self._drive_read_data(read)

    def word_value(self, word: LocalWord) -> Value:
        """Return the signal of a word that memories can store.

        It is a word for an injection port of this node, or a word at the inputs of the module.
        """
        if word.injected:
            return self.inject.word_select(word.position, self.settings.width)
        return super().word_value(word)

    # Addresses

    def _row_address(self, flit: Value, bank: Bank, rows: FlitRows, section: str) -> Value:
        """Return the address, in a Verilog memory of a bank, of the word that contains a flit.

        A bank is a set of memories with common addresses. `flit` is the address of the flit. A word
        of the Verilog memory has one flit or several, as `rows` says. The section (the part of the
        memory that a run uses) is added as high bits, from the input named `section`.
        """
        row, _ = rows.split_address_signal(flit)
        bits = (rows.n_rows(bank.size) - 1).bit_length()
        if not self._port.section_bits:
            return resize(row, max(bits, 1))
        where = self.node_register(section) if section == "section" else self.input_value(section)
        return Cat(resize(row, bits), where)

    def _guest_address(self, guest: Guest, word: Value, bank: Bank) -> Value:
        """Return the address, in the Verilog memory of `bank`, of a word of its guest."""
        bits = max((guest.base & -guest.base).bit_length() - 1, 0)
        high = (bank.size - 1).bit_length() - bits
        return Cat(resize(word, bits), Const(guest.base >> bits, high))

    def _early_address(self, address: AddressSource) -> Value:
        """Return the address of a flit in a run, one cycle before the memory needs it.

        The address then passes a register of this node.
        """
        if address.column is not None:
            return self.input_value(self.inputs.addresses[address.column])
        first = Cat(*map(self.early_bit_value, address.first))
        if address.counter is None:
            return first
        word = self.input_value(f"word_{address.counter}")
        if address.lag:
            lagging = [word]
            for cycles in range(1, 1 << len(address.lag)):
                name = f"word_{address.counter}_d{cycles}"
                lagging.append(self._shared_register(lagging[-1], name, name))
            word = choose_value(lagging, Cat(*map(self.early_bit_value, address.lag)))
        return first + word

    def _run_address(self, address: AddressSource) -> Value:
        """Return the address of a flit in a run, in the cycle in which the memory needs it.

        Equal addresses share one register of the node.
        """
        if address.column is not None:
            return self.node_register(self.inputs.addresses[address.column])
        if address.early:
            early = self._early_address(address)
            return self._shared_register(early, f"address_of_{len(self._addresses)}", address)
        found = self.number_value(address.first)
        if address.counter is not None:
            found = found + self.node_register(f"word_{address.counter}")
        return found

    def _shared_register(self, value: Value, name: str, key: object) -> Value:
        """Return a register of this node that holds `value`, called `name`.

        Calls with equal keys return the same register.
        """
        if key not in self._addresses:
            self._addresses[key] = unmerged_register(self.m, value, name=name)
        return self._addresses[key]

    @cached_property
    def _port_signals(self) -> PortSignals:
        """The signals of the memory port at this node: write strobes, addresses and data."""
        own = [bank for bank in self.shape.banks if bank.own]
        written = [number for bank in own for number in bank.members]
        written += [guest.memory for bank in own for guest in bank.guests]
        return self._port.node_signals(self, written)

    @property
    def _is_busy(self) -> Value:
        """Signal that is high while a run controls the memories; else the memory port does."""
        return self.node_register("busy")

    # Memories

    def _add_bank(self, bank: Bank) -> None:
        """Add the Verilog memories of a bank, one for each copy.

        A bank is a set of memories with common addresses. Its copies are written alike, and each
        has a read port of its own.
        """
        stored = self._run_write_port(bank)
        for number, copy in enumerate(bank.copies):
            rows, name = bank.rows_of(number), bank_name(bank, number)
            word = add_memory(
                self.m,
                name,
                self.cells[name],
                write=self._write_port(bank, rows, stored),
                read=self._read_port(bank, number, rows),
                many=self._many,
            )
            lanes = [*enumerate(bank.members), *((0, guest.memory) for guest in bank.guests)]
            for place, member in lanes:
                row = word.word_select(place, rows.beat * self.settings.width)
                if copy.shown:
                    self._shown[member] = row
                if rows.beat > 1 and copy.address is not None:
                    _, flit = rows.split_address_signal(self._run_address(copy.address))
                    row = self._select_flit(row, flit, rows.beat, name)
                self._words_of[member, number] = row

    def _read_port(self, bank: Bank, number: int, rows: FlitRows) -> ReadPort:
        """Return the address and enable of the read port for copy number `number` of a bank.

        During a run the program drives the read port, otherwise the memory port of the node. A word
        of the copy has one flit or several, as `rows` says.
        """
        copy = bank.copies[number]
        if self._is_register(bank, number):
            return NO_READ
        if copy.address is None:
            asked = self._row_address(self._port_signals.address, bank, rows, "read_section")
            return ReadPort(asked, self._port_signals.asks)
        address = self._row_address(self._run_address(copy.address), bank, rows, "section")
        if not copy.shown:
            return ReadPort(address, self._is_busy)
        shown_guests = [each for each in bank.guests if each.memory in self.shape.received]
        if shown_guests or not self._port.shares_read_address(copy.address):
            asked = self._row_address(self._port_signals.address, bank, rows, "read_section")
            for guest in shown_guests:
                asked = self._guest_address(guest, self._port_signals.address, bank)
            address = Mux(self._is_busy, address, asked)
        asks = self._port_signals.asks
        return ReadPort(address, asks if isinstance(asks, Const) else self._is_busy | asks)

    def _write_port(self, bank: Bank, rows: FlitRows, stored: WritePort) -> WritePort:
        """Return the signals that drive the write port of a copy of `bank`.

        The write port stores the words that arrive in a run, whose address, word and enable are in
        `stored`, and the words that an adapter writes by the memory port. A word of the copy has
        one flit or several, as `rows` says.
        """
        address = self._row_address(stored.address, bank, rows, "section")
        stored = rows.write_flit(stored)
        if not bank.own:
            return stored._replace(address=address)
        given = self._port_signals.word.replicate(len(bank.members))
        loads = [self._port_signals.loads[member] for member in bank.members]
        layout = self._port.memories[bank.members[0]].layout
        asked = self._row_address(self._port_signals.layouts[layout], bank, rows, "write_section")
        for guest in bank.guests:
            load = self._port_signals.loads[guest.memory]
            word = self._port_signals.layouts[self._port.memories[guest.memory].layout]
            asked = Mux(load, self._guest_address(guest, word, bank), asked)
            loads = [loads[0] | load]
        if not bank.arrivals:
            return WritePort(asked, given, Cat(*loads))
        assert not self._port.concurrent, "no memory is written by runs and the port at once"
        enable = stored.enable.replicate(len(bank.members))
        return WritePort(
            Mux(self._is_busy, address, asked),
            Mux(self._is_busy, stored.data, given),
            enable | Cat(*(load.replicate(rows.beat) for load in loads)),
        )

    def _run_write_port(self, bank: Bank) -> WritePort:
        """Return the address, word and enable by which a bank stores arriving words in a run.

        A bank is a set of memories with common addresses. Words from links of different lengths
        arrive at different times in the row, each with a strobe, and share one multiplexer of
        words. The strobe that is high selects the address and the select bits, one cycle early.
        """
        number, arrivals = bank.members[0], bank.arrivals
        if not arrivals:
            return WritePort(Const(0, 1), Const(0, len(bank.members) * self.settings.width), NEVER)
        acts = [self._arrival_strobe(arrival) for arrival in arrivals]
        enable: Value = self._run_write_enable(arrivals, acts, number)
        if arrivals[0].exact:
            late = Cat(*map(self.early_bit_value, arrivals[0].late))
            early = self._early_address(arrivals[0].address)
            address = self._shared_register(
                (early - late)[: len(early)], f"stores_at_{number}", ("stores at", number)
            )
        elif len(arrivals) == 1:
            address = self._run_address(arrivals[0].address)
        else:
            early = self._early_address(arrivals[0].address)
            for act, arrival in zip(acts[1:], arrivals[1:], strict=True):
                early = Mux(act, self._early_address(arrival.address), early)
            early = resize(early, max((bank.size - 1).bit_length(), 1))
            address = self._shared_register(early, f"stores_at_{number}", ("stores at", number))
        words = []
        for place, (member, choice) in enumerate(zip(bank.members, bank.words, strict=True)):
            codes = [[self.early_bit_value(bit) for bit in each.codes[place]] for each in arrivals]
            code = Cat(*codes[0])
            if len(arrivals) > 1:
                gated = [[act & bit for bit in each]
                         for act, each in zip(acts, codes, strict=True)]  # fmt: skip
                code = Cat(*(reduce(or_, bits) for bits in zip(*gated, strict=True)))
            inputs = [self.word_value(word) for word in choice.words]
            words.append(
                self.select_with_early_bits(code, inputs, f"to_memory_{member}", branched=False)
            )
        return WritePort(address, Cat(*words), enable)

    def _arrival_strobe(self, arrival: BankArrivals) -> Value:
        """Return a signal that is high one cycle before memories store a word of `arrival`.

        `arrival` stands for the words that arrive over links of one length. The signal is a strobe
        of the sequencer, enabled by the table of the node.
        """
        strobes = [self.input_value(f"valid_{strobe}") for strobe in arrival.strobes]
        if arrival.late == (ALWAYS,):
            return strobes[0]
        late = Cat(*map(self.early_bit_value, arrival.late))
        return late & strobes[0] if len(late) == 1 else choose_value([NEVER, *strobes], late)

    def _run_write_enable(
        self, arrivals: Sequence[BankArrivals], acts: list[Value], number: int
    ) -> Value:
        """Return the write enable of a bank, a set of memories with common addresses, during runs.

        `arrivals` has one entry for each length of links from which the bank stores words, and
        ``acts[k]`` is high one cycle before a word of ``arrivals[k]`` is stored. `number` is the
        number of the first memory of the bank.
        """
        if len(arrivals) == 1 and arrivals[0].late == (ALWAYS,):
            return self.node_register(f"valid_{arrivals[0].strobes[0]}")
        key = tuple((arrival.late, arrival.strobes) for arrival in arrivals)
        return self._shared_register(reduce(or_, acts), f"store_{number}", key)

    def _select_flit(self, row: Value, flit: Value, beat: int, name: str) -> Value:
        """Return flit number `flit` of `row`, a word that is read a cycle after its address.

        `flit` comes in the cycle of the address. `name` is that of the Verilog memory.
        """
        flits = [row.word_select(k, self.settings.width) for k in range(beat)]
        code = look_up([select_code(beat, k) for k in range(beat)], flit)
        code = resize(code, select_bit_count(beat))
        return self.select_with_early_bits(code, flits, f"flit_of_{name}", branched=False)

    # Pools

    def _add_pool(self, pool: Pool) -> None:
        """Add the columns of a pool, and set the words that readers or the memory port read."""
        banks = [self.shape.banks[place] for place in pool.banks]
        names = self._column_names(pool)
        ports = self._sent_pool_ports if banks[0].own else self._received_pool_ports
        words = [
            add_memory(self.m, name, self.cells[name], write=write, read=read, many=self._many)
            for name, (write, read) in zip(names, ports(pool, banks), strict=True)
        ]
        row = Cat(words)
        if pool.accesses:
            counter = self.node_register(f"word_{pool.counter}")
            _, flit = banks[0].rows.split_address_signal(counter)
            self._pooled |= {bank.members[0]: (row, flit) for bank in banks}
            return
        for bank, turn in zip(banks, pool.turns, strict=True):
            self._shown[bank.members[0]], self._turns[bank.members[0]] = row, turn

    def _select_pooled_flit(self, memory: int, access: Sequence[Bit], reader: int) -> Value:
        """Return the flit that a reader passes from the columns of a pool.

        `memory` is the first memory of the pool, `access` has the sources of the bits of the access
        by which the reader reads it, and `reader` is the number of the reader.
        """
        row, flit = self._pooled[memory]
        beat, choice = 1 << len(flit), self.number_value(access)
        key: object = (memory, reader)
        if all(bit.place is BitPlace.CONSTANT for bit in access):
            # A rotation by wires, which readers with the same access share.
            turn = sum(bit.number << k for k, bit in enumerate(access))
            key, choice = (id(row), turn), choice[:0]
            row = row.rotate_right(turn * self.settings.width)
        if key not in self._selected:
            codes = [
                select_code(beat, (k + turn) % beat)
                for turn in range(1 << len(choice))
                for k in range(beat)
            ]
            code = resize(look_up(codes, Cat(flit, choice)), select_bit_count(beat))
            flits = [row.word_select(k, self.settings.width) for k in range(beat)]
            name = f"flit_of_{memory}_by_{reader}"
            self._selected[key] = self.select_with_early_bits(code, flits, name, branched=False)
        return self._selected[key]

    def _received_pool_ports(
        self, pool: Pool, banks: Sequence[Bank]
    ) -> list[tuple[WritePort, ReadPort]]:
        """Return the ports of the columns of a pool of received words.

        A run writes a flit of each bank, and the memory port reads a row of one bank.
        """
        stored = [self._run_write_port(bank) for bank in banks]
        words = [each.data for each in stored]
        starts = [
            Cat(self._pool_row(pool, bank, each.address, Const(base)), each.enable)
            for bank, base, each in zip(banks, pool.bases, stored, strict=True)
        ]
        base = [0] * (1 << self._port.bank_bits)
        for bank, start in zip(banks, pool.bases, strict=True):
            base[bank.members[0]] = start
        asked = self._pool_row(
            pool, banks[0], self._port_signals.address, look_up(base, self._port_signals.bank)
        )
        read = ReadPort(Cat(asked, self.input_value("read_section")), self._port_signals.asks)
        found = []
        for column, name in enumerate(self._column_names(pool)):
            accesses, flit = self._column_accesses(pool, column)
            *address, enable = self._choose_start(starts, look_up(accesses, flit), name)
            codes = [select_code(len(banks), access % len(banks)) for access in accesses]
            code = resize(look_up(codes, flit), select_bit_count(len(banks)))
            data = self.select_with_early_bits(code, words, f"word_of_{name}", branched=False)
            where = Cat(*address, self.node_register("section"))
            found.append((WritePort(where, data, enable), read))
        return found

    def _sent_pool_ports(
        self, pool: Pool, banks: Sequence[Bank]
    ) -> list[tuple[WritePort, ReadPort]]:
        """Return the ports of the columns of a pool of words that the node sends.

        A run reads a flit of each bank, and the memory port writes a row of one bank.
        """
        port, width, beat = self._port_signals, self.settings.width, banks[0].rows.beat
        loads = [port.loads[bank.members[0]] for bank in banks]

        def number_of_load(numbers: Sequence[int], bits: int) -> Value:
            """Return ``numbers[b]`` if the memory port writes bank b."""
            each = (Mux(load, Const(n, bits), 0) for load, n in zip(loads, numbers, strict=True))
            return reduce(or_, each)

        address = port.layouts[self._port.memories[banks[0].members[0]].layout]
        base = number_of_load(pool.bases, (pool.size - 1).bit_length())
        asked = self._pool_row(pool, banks[0], address, base)
        asked = Cat(asked, self.input_value("write_section"))
        turns = sorted({*pool.turns})
        codes = [select_code(len(turns), turns.index(turn)) for turn in pool.turns]
        code = number_of_load(codes, select_bit_count(len(turns)))
        starts = [
            self._pool_row(
                pool,
                self.shape.banks[access.bank],
                self._run_address(access.address),
                self.number_value(access.base),
            )
            for access in pool.accesses
        ]
        found = []
        for column, name in enumerate(self._column_names(pool)):
            accesses, flit = self._column_accesses(pool, column)
            flits = [port.word.word_select((column - turn) % beat, width) for turn in turns]
            instance = f"word_of_{name}" if self.is_unbound and len(turns) >= LEAST_INPUTS else None
            data = Multiplexer(len(turns), width, branched=False).add_instance(
                self.m, flits, code, instance
            )
            at = self._choose_start(starts, look_up(accesses, flit), name)
            read = ReadPort(Cat(at, self.node_register("section")), self._is_busy)
            found.append((WritePort(asked, data, Cat(loads).any()), read))
        return found

    def _pool_row(self, pool: Pool, bank: Bank, flit: Value, base: Value) -> Value:
        """Return the word of a column, in its section, that has a flit of a bank of the pool.

        `flit` is the address of the flit in the bank, and `base` the first word of the bank. `bank`
        is this bank, or one that is not smaller.
        """
        row, _ = bank.rows.split_address_signal(flit)
        bits = (pool.size - 1).bit_length()
        used = (bank.n_rows - 1).bit_length()
        return resize(resize(row, used), bits) | resize(base, bits)

    def _column_accesses(self, pool: Pool, column: int) -> tuple[list[int], Value]:
        """Return the access of a pool that uses a column, for each position in a row.

        The second value is the position that runs access, a cycle before they do.
        """
        rows = self.shape.banks[pool.banks[0]].rows
        _, flit = rows.split_address_signal(self.input_value(f"word_{pool.counter}"))
        return [(column - k) % rows.beat for k in range(rows.beat)], flit

    def _choose_start(self, starts: Sequence[Value], turn: Value, name: str) -> Value:
        """Return ``starts[turn]``, or 0 if there are fewer, with a register behind `turn`.

        Why no multiplexer of its own: synthesis finds that the bits of bases are constants, and
        that several banks may have the same address.
        """
        values = [*starts, *[Const(0, len(starts[0]))] * ((1 << len(turn)) - len(starts))]
        return choose_value(values, unmerged_register(self.m, turn, name=f"turn_of_{name}"))

    # Readers

    def _add_reader(self, number: int, reader: Reader) -> Value:
        """Add the multiplexer of reader number `number`, and return the word that it passes.

        A reader passes, in each row, a word of one of the memories. The multiplexer of one reader
        of the node may also serve the memory port, which controls it between runs.
        """
        read = [
            self._select_pooled_flit(memory, access, number)
            if access
            else self._words_of[memory, copy]
            for (memory, copy), access in zip(reader.inputs, reader.accesses, strict=True)
        ]
        words = [
            self.identity_word() if word.position < 0 else read[word.position]
            for word in reader.choice.words
        ]
        code = Cat(*map(self.early_bit_value, reader.choice.bits))
        if number == self.shape.port_reader:
            # The port never reads the identity word, which has no memory.
            groups = [[reader.inputs[word.position][0]] if word.position >= 0 else []
                      for word in reader.choice.words]  # fmt: skip
            code = Mux(self._is_busy, code, self._port_select_bits(groups, self._port_signals.bank))
        return self.select_with_early_bits(code, words, f"of_reader_{number}", branched=False)

    def combine_readers(self, words: list[Value], injection: int) -> Value:
        """Return the word for injection port `injection`, from the words of its readers.

        A tree of operators combines `words`, if there are several.
        """
        if not words:
            return Const(0, self.settings.width)
        late, unit = self.shape.injection_delay, self.settings.unit
        if len(words) == 1:
            return delay_value(self.m, words[0], late)
        assert unit is not None
        names = iter(range(len(words)))

        def combine_pair(*pair: Value) -> Value:
            assert unit is not None
            name = f"{injection}_{next(names)}" if self.is_unbound else None
            from ..operator_unit import add_operator

            return add_operator(self.m, unit, pair, self.run_operator_code(), name=name)

        word = combine_in_tree(
            words, combine_pair, lambda word: delay_value(self.m, word, unit.latency)
        )
        return delay_value(self.m, word, late - unit.latency * (len(words) - 1).bit_length())

    # The memory port

    def _drive_read_data(self, read: list[Value]) -> None:
        """Drive ``read_data`` with the word that the memory port reads, or 0 if it reads none.

        ``read[k]`` is the word that reader k passes. Between runs, the multiplexer of one reader
        can serve the memory port; its word is then the word that the port reads.
        """
        banks = [number for number in self.shape.received if number in self._shown]
        if not banks:
            return
        if self._port.concurrent:
            self._drive_read_pipeline(banks)
            return
        late = self._port.stages - 1
        if self.shape.port_reader is not None:
            word = delay_value(self.m, read[self.shape.port_reader], late)
        elif late:
            word = self._select_in_stages(banks)
        else:
            word = self._select_read_word(banks)
        asks = self._port_signals.asks
        if not isinstance(asks, Const):
            # The inverted read enable comes from a register, so that it can be the
            # synchronous reset of `read_data` without logic in between.
            silent = delay_value(self.m, ~asks, 1 + late, "silent")
            word = Mux(silent, 0, word)
        self.m.d.sync += self.read_data.eq(word)

    def _drive_read_pipeline(self, banks: list[int]) -> None:
        """Drive ``read_data`` if the memory port works during runs: a pipeline that can be stopped.

        All stages keep their values while ``read_advance`` is low. `banks` are the numbers of the
        memories that the port reads.
        """
        m, asked, keep = self.m, self._port_signals, make_keeper(self.m, self._port.width)

        def add_stage(value: Value, name: str) -> Value:
            stage = Signal(len(value), name=name, reset_less=True)
            with m.If(asked.asks):
                m.d.sync += stage.eq(value)
            return stage

        rows, code = self._turned_rows(banks)
        most = STAGE_INPUTS if self._port.stages > 1 else len(rows)
        first, rest = rows[:most], rows[most:]
        used = select_bit_count(len(first))
        code = add_stage(code, "read_select") if len(code) else code
        word = plain_cascade(first, [*code[:used]], self._port.width, keep)
        if self._port.stages > 1:
            word, code = (
                add_stage(word, "read_of_first"),
                add_stage(code[used:], "read_select_of_rest"),
            )
            later = [add_stage(each, f"read_of_{k}") for k, each in enumerate(rest, STAGE_INPUTS)]
            word = extended_cascade(word, later, [*code], keep)
        with m.If(asked.asks):
            m.d.sync += self.read_data.eq(word)

    def _turned_rows(self, banks: list[int]) -> tuple[list[Value], Value]:
        """Return the rows among which the memory port selects, and the select bits.

        The rows are those of the memories `banks`, in each rotation that occurs. The address of a
        row has the position at which its first flit is stored.
        """
        layout = next(bank.rows for bank in self.shape.banks if not bank.own)
        _, flit = layout.split_address_signal(self._port_signals.address)
        flit = flit if self.shape.turns > 1 else flit[:0]
        rows: dict[object, Value] = {}
        groups: dict[object, list[int]] = {}
        for bank in banks:
            for turn in range(self.shape.turns):
                first = -turn % layout.beat
                rotation = (first + self._turns.get(bank, 0)) % layout.beat
                key, row = (id(self._shown[bank]), rotation), self._shown[bank]
                rows[key] = row.rotate_right(rotation * self.settings.width)
                groups.setdefault(key, []).append(bank << len(flit) | first)
        asked = Cat(flit, self._port_signals.bank)
        return [*rows.values()], self._port_select_bits([*groups.values()], asked)

    def _select_read_word(self, banks: list[int]) -> Value:
        """Return the word that the memory port reads, chosen among the memories in `banks`."""
        words = [self._shown[bank] for bank in banks]
        code = self._port_select_bits([[bank] for bank in banks], self._port_signals.bank)
        small = len(words) <= MOST_IN_CASCADE
        return self.select_with_early_bits(
            code, words, f"read_of_{banks[0]}", branched=False, small=small
        )

    def _select_in_stages(self, banks: list[int]) -> Value:
        """Return the word that the memory port reads, selected in two pipeline stages.

        The first stage selects among the first `STAGE_INPUTS` memories. The second selects between
        its word and the other memories, which are grouped by `STAGE_INPUTS` if there are many.
        `banks` are the numbers of all memories that the port reads.
        """
        first, rest = banks[:STAGE_INPUTS], banks[STAGE_INPUTS:]
        size = 1 if len(rest) <= STAGE_INPUTS else STAGE_INPUTS
        groups = [rest[at : at + size] for at in range(0, len(rest), size)]
        inputs = [*([bank] for bank in first), *groups]
        code = self._port_select_bits(inputs, self._port_signals.bank)
        used, words = select_bit_count(len(first)), [self._shown[bank] for bank in first]
        held = self.select_with_early_bits(
            code[:used], words, "read_of_first", branched=False, small=True
        )
        later = [delay_value(self.m, self._select_read_word(group), 1) for group in groups]
        return continued_cascade(
            self.m,
            delay_value(self.m, held, 1),
            later,
            delay_value(self.m, code[used:], 1),
            name="read_of_rest",
            sliced=self.is_unbound,
        )

    def _port_select_bits(self, groups: list[list[int]], asked: Value) -> Value:
        """Return the select bits of a multiplexer for the memory port, from the number of a memory.

        Input k of the multiplexer serves the memories with the numbers ``groups[k]``, and `asked`
        is the number of the memory that the port reads.
        """
        if len(groups) < 2:
            return Const(0, 0)
        codes = []
        for number in range(1 << len(asked)):
            # The select bits of other numbers are free. Those of a memory whose number differs in
            # one bit make the look-up depend on few bits.
            near = [number, *(number ^ 1 << bit for bit in range(len(asked)))]
            found = (k for each in near for k, group in enumerate(groups) if each in group)
            codes.append(select_code(len(groups), next(found, 0)))
        return resize(look_up(codes, asked), select_bit_count(len(groups)))
