"""The reads of an endpoint: by its readers, as the program says, and by the host.

The words of a node's memories are chosen from, for the host, in stages of at most two look-up
tables with a register behind each. All endpoints of a fabric take as long: one with fewer stages
asks its memories later. A node that is not asked shows 0, so that a tree that only combines brings
the word of the one that is to the host port.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ..program.fields import NEUTRAL
from .endpoint import EndpointPorts
from .endpoint_shape import STAGE_INPUTS, EndpointReader
from .memories import choose, constant_at
from .modules import apart, delayed
from .multiplexer import SLICE, cascade, extended_cascade, keeper, select_bits, select_code
from .place import Location

__all__ = ["HostReads", "Inputs", "Reader"]


class Inputs:
    """What the sequencer and the node's row ROM give."""

    def __init__(self, m: Module, endpoint: EndpointPorts) -> None:
        self._m, self._endpoint = m, endpoint
        self._held: dict[tuple[int, ...], Value] = {}

    def at(self, where: Location) -> Value:
        """A value, there before the first row."""
        values: list[Value] = []
        if where.start is not None:
            values.append(self._endpoint.value("row")[where.start : where.start + where.width])
        if where.by_form:
            if where.constants not in self._held:
                self._held[where.constants] = delayed(
                    self._m, self.of_form(where.constants), 1, "of_mode"
                )
            values.append(self._held[where.constants])
        elif where.constants[0] or not values:
            values.append(Const(where.constants[0], where.width))
        return values[0] if len(values) == 1 else values[0] | values[1]

    def of_form(self, constants: tuple[int, ...]) -> Value:
        """The constant of the form, without a register."""
        if len(set(constants)) == 1:  # so that nothing need know the form
            return Const(constants[0], max(constants[0].bit_length(), 1))
        return constant_at(constants, self._endpoint.value("form"))

    def reader(self, shape: EndpointReader) -> Reader:
        """What drives the reads of a reader."""
        sending = Const(1) if shape.sending is None else self.at(shape.sending)
        code = None if shape.code is None else self._now(self.at(shape.code))
        return Reader(shape, self._address(shape, code), code, sending)

    def _now(self, value: Value) -> Value:
        """A value as late as the row is read: in forms that read late the cycles of a link."""
        if not self._endpoint.settings.late:
            return value
        before = delayed(self._m, value, self._endpoint.settings.links)
        return Mux(self._endpoint.value("late"), before, value)

    def _address(self, shape: EndpointReader, code: Value | None) -> Value:
        """What a column of the sequencer gives, and a base if there is one."""
        where, address = shape.address, self._now(self._endpoint.value(f"read_{shape.column}"))
        if shape.own is not None:
            last, address = address, self._now(self._endpoint.value(f"read_{shape.own}"))
            if code is not None:
                count = len(shape.memories)
                address = Mux(code == select_code(count, count - 1), address, last)
        if not where.at_node:
            return address
        base, shift = self._now(self.at(where)), where.shift
        if shift is None:
            address = base + address
        else:
            # The sequencer gives whole addresses in forms in which the base is 0.
            address = Cat(address[:shift], base | address[shift:] if where.joins else base)
        return address[: self._endpoint.settings.address_bits]


@dataclass
class Reader:
    """What drives the reads of a reader.

    Parameters
    ----------
    address : Value
        A cycle before memories are given it.
    code : Value or None
        Select bits of the memory, with the address.
    sending : Value
        Whether it reads anything in this row.
    """

    shape: EndpointReader
    address: Value
    code: Value | None
    sending: Value

    def reads(self, memory: int) -> Value:
        """Whether the address is for a memory."""
        memories = self.shape.memories
        if self.code is None:
            return self.sending
        return self.sending & (self.code == select_code(len(memories), memories.index(memory)))


class HostReads:
    """The host's side of the reads of an endpoint.

    Attributes
    ----------
    chosen : Value
        Whether the host asks this node.
    address : Value
        Where; both a cycle before memories are given it.
    waits : bool
        Whether questions are put later than they come, for all nodes to answer at once.
    """

    def __init__(self, m: Module, endpoint: EndpointPorts) -> None:
        self._m, self._endpoint = m, endpoint
        self._settings = endpoint.settings
        self._width = endpoint.shape.beat * endpoint.settings.width
        self._stages = endpoint.shape.read_stages
        # What comes from the host port has passed a register that `busy` has passed as well.
        pause = self._settings.host_stages - self._stages + self._settings.private
        self.waits = pause > 0
        value = endpoint.value
        self.chosen = delayed(m, value("read_node") == value("node"), pause, "asked")
        self._bank = delayed(m, value("read_bank"), pause)
        self.address = delayed(m, value("read_address"), pause)
        halves = self._settings.halves
        if any(halves):
            # Only the root, at offset 0, shows what it sends rather than what it has received.
            received = value("offset").any()
            cut = {half: self.address[: (half - 1).bit_length()] for half in halves if half}
            addresses = [Cat(cut[half], received) if half else self.address for half in halves]
            several = len({*halves}) > 1
            self.address = choose(addresses, value("form")) if several else addresses[0]

    def code(self, memories: Sequence[int]) -> Value:
        """The select bits with which a cascade passes on the memory that is asked for."""
        known = [number for number in memories if number != NEUTRAL]
        codes = [
            select_code(len(memories), memories.index(number if number in known else known[-1]))
            for number in range(max(known) + 1)
        ]
        width = max(len(select_bits(len(memories), 0)), 1)
        return choose([Const(value, width) for value in codes], self._bank)

    def show(self, word: Value) -> None:
        """Show a word that is the one asked for a cycle after its memory was given the address."""
        read_data = self._endpoint.read_data
        if not self._settings.gathered:
            self._m.d.sync += read_data.eq(word)
            return
        # A register holds what resets the word, with nothing in between.
        silent = delayed(self._m, ~self.chosen, 1 + self._stages, "silent")
        self._m.d.sync += read_data.eq(Mux(silent, 0, word))

    def show_one(self, words: dict[int, Value], *, constant: set[int]) -> None:
        """Show the word of the memory that is asked for.

        Parameters
        ----------
        words : dict of int to Value
            By the number of the memory; at least one.
        constant : set of int
            The memories that show the same word all the time, so that it need not wait.
        """
        numbers = sorted(words)
        if len(numbers) == 1:
            self.show(words[numbers[0]])
            return
        code = delayed(self._m, self.code(numbers), 1, "code")
        size = SLICE if self._endpoint.alone else self._width
        slices = []
        for low in range(0, self._width, size):
            high = min(low + size, self._width)
            inputs = [(words[number][low:high], number in constant) for number in numbers]
            slices.append(self._choice(inputs, code, high - low, f"host_select_{low // size}"))
        self.show(Cat(*slices))

    def _choice(
        self, inputs: list[tuple[Value, bool]], code: Value, width: int, name: str
    ) -> Value:
        """One of several words, chosen in stages, without the register behind the last one."""
        m, alone = self._m, self._endpoint.alone
        keep = keeper(m, width)
        first, later = inputs[:STAGE_INPUTS], inputs[STAGE_INPUTS:]
        used = len(select_bits(len(inputs), 0)) - -(-len(later) // 2)
        bits, code = apart(m, code[:used], name=name, alone=alone), code[used:]
        chosen = cascade([word for word, _ in first], [*bits], width, keep)
        for stage in range(1, self._stages):
            held = Signal(width, name=f"{name}_word_{stage}", reset_less=True)
            m.d.sync += held.eq(chosen[:width])
            pairs = later[(stage - 1) * STAGE_INPUTS :][:STAGE_INPUTS]
            used = -(-len(pairs) // 2)
            early = delayed(m, code[:used], stage)
            bits = apart(m, early, name=f"{name}_{stage}", alone=alone)
            late = [word if same else delayed(m, word, stage) for word, same in pairs]
            chosen, code = extended_cascade(held, late, [*bits], keep), code[used:]
        return chosen[:width]
