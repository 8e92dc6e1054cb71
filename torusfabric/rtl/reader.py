"""The readers of an endpoint: what drives the addresses of its memories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from .cascade import select_code
from .delays import delayed
from .endpoint_shape import Address, EndpointReader, Field
from .memories import choose

if TYPE_CHECKING:
    from .endpoint import Endpoint

__all__ = ["NEVER", "Inputs", "Reader", "add_reader"]

#: Never high.
NEVER = Const(0, 1)


class Inputs:
    """What the sequencer and the node's row ROM give.

    Parameters
    ----------
    m : Module
    endpoint : Endpoint
    """

    def __init__(self, m: Module, endpoint: Endpoint) -> None:
        self._m, self._endpoint = m, endpoint
        self._held: dict[tuple[int, ...], Value] = {}

    def value(self, name: str) -> Value:
        """What drives an input."""
        return self._endpoint.value(name)

    def field(self, which: Field) -> Value:
        """A value of the row ROM, or the constant of the mode, there before the first row."""
        values: list[Value] = []
        if which.stored:
            values.append(self.value("row")[which.start : which.start + which.width])
        if which.by_mode:
            if which.constants not in self._held:
                self._held[which.constants] = delayed(self._m, self.of_mode(which.constants), 1)
            values.append(self._held[which.constants])
        elif which.constants[0] or not which.stored:
            values.append(Const(which.constants[0], which.width))
        return values[0] if len(values) == 1 else values[0] | values[1]

    def of_mode(self, constants: tuple[int, ...]) -> Value:
        """The constant of the mode, without a register."""
        width = max(max(constants).bit_length(), 1)
        if len(set(constants)) == 1:
            return Const(constants[0], width)
        return choose([Const(value, width) for value in constants], self.value("mode"))

    def phase(self, window: int, ago: int) -> Value:
        """Whether a flit within a window was read some cycles ago."""
        return self.value("phase")[window * self._endpoint.settings.windows.phases + ago]

    def advance(self, ends_block: Value | None) -> Value | int:
        """By how much an address grows, given whether its word is the last of a block."""
        return 1 if ends_block is None else Mux(ends_block, self.value("skip"), 1)

    def ends_block(self, ago: int) -> Value | None:
        """Whether the last flit of a block was read so many cycles ago; None if of no matter."""
        windows = self._endpoint.settings.windows
        return self.phase(windows.count, ago) if windows.skip_bits else None


@dataclass
class Reader:
    """What drives the reads of a reader.

    Parameters
    ----------
    shape : EndpointReader
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


def add_reader(
    m: Module, endpoint: Endpoint, inputs: Inputs, index: int, shape: EndpointReader
) -> Reader:
    """Add what makes the addresses of a reader.

    Parameters
    ----------
    m : Module
    endpoint : Endpoint
    inputs : Inputs
    index : int
        Of the reader in the shape of the endpoint.
    shape : EndpointReader
    """
    sending = Const(1) if shape.sending is None else inputs.field(shape.sending)
    code = None if shape.code is None else inputs.field(shape.code)
    address = None if shape.column is None else _given_address(endpoint, inputs, shape)
    if shape.address is Address.RUNS:
        made, address_made = _add_generator(m, endpoint, inputs, index, shape)
        made = made if len(shape.memories) > 1 else None
        if address is None:
            return Reader(shape, address_made, made, sending)
        assert shape.generating is not None
        generating = inputs.field(shape.generating)
        address = Mux(generating, address_made, address)
        code = None if made is None or code is None else Mux(generating, made, code)
    assert address is not None
    return Reader(shape, address, code, sending)


def _given_address(endpoint: Endpoint, inputs: Inputs, shape: EndpointReader) -> Value:
    """The address that follows from a column of the sequencer, and a base if there is one."""
    address = inputs.value(f"read_{shape.column}")
    if shape.base is None:
        return address
    base, shift = inputs.field(shape.base), shape.base_shift
    if shift is None:
        address = base + address
    else:
        # The sequencer gives whole addresses in modes in which the base is 0.
        address = Cat(address[:shift], base | address[shift:] if shape.joins else base)
    return address[: endpoint.settings.address_bits]


def _add_generator(
    m: Module, endpoint: Endpoint, inputs: Inputs, index: int, shape: EndpointReader
) -> tuple[Value, Value]:
    """Add a generator that steps through runs; returns select bits and address.

    Registers hold the run under way: its select bits, the address, and how many words are left. The
    ROM of runs takes a cycle, so the run that comes next always waits at its output: `number` is
    that of the next run, and the address of the ROM is a run ahead of it in the cycle in which one
    ends. At rest the ROM shows the first run; which that is may depend on the mode, which comes
    with `busy`, so that a run begins a cycle later then.
    """
    widths = shape.runs
    given, busy = inputs.value(f"run_{index}"), inputs.value("busy")
    if len(set(widths.first)) > 1:
        busy = delayed(m, busy, 1)
    first = inputs.of_mode(widths.first)
    code = Signal(widths.code, name=f"bank_{index}", reset_less=True)
    address = Signal(widths.address, name=f"address_{index}", reset_less=True)
    left = Signal(widths.left, name=f"left_{index}", reset_less=True)
    number = Signal(widths.number, init=1, name=f"run_number_{index}", reset_less=True)
    begun = Signal(name=f"begun_{index}", reset_less=True)
    windows = [inputs.phase(window, 0) for window in shape.windows]
    assert shape.active is not None
    active = choose([NEVER, *windows], inputs.field(shape.active))
    ends_block = inputs.ends_block(0)
    counts = active if ends_block is None else active & ends_block
    ends = counts & (left == 0)
    m.d.sync += begun.eq(busy)
    m.d.comb += getattr(endpoint, f"run_address_{index}").eq(
        Mux(busy, Mux(ends, number + 1, number), first)
    )
    with m.If(~busy):
        m.d.sync += number.eq(first + 1)
    with m.Elif(ends):
        m.d.sync += number.eq(number + 1)
    # The first run is loaded in the cycle after the last in which the node was at rest.
    with m.If(~begun | ends):
        m.d.sync += Cat(code, address, left).eq(given)
    with m.Elif(active):
        m.d.sync += [address.eq(address + inputs.advance(ends_block)), left.eq(left - counts)]
    return code, address
