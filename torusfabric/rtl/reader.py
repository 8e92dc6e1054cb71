"""The readers of an endpoint: what drives the addresses of its memories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Value

from .cascade import select_code
from .endpoint_shape import EndpointReader
from .memories import choose
from .place import Location
from .registers import delayed

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

    def at(self, where: Location) -> Value:
        """A value, there before the first row."""
        values: list[Value] = []
        if where.start is not None:
            values.append(self.value("row")[where.start : where.start + where.width])
        if where.by_mode:
            if where.constants not in self._held:
                self._held[where.constants] = delayed(
                    self._m, self.of_mode(where.constants), 1, "of_mode"
                )
            values.append(self._held[where.constants])
        elif where.constants[0] or not values:
            values.append(Const(where.constants[0], where.width))
        return values[0] if len(values) == 1 else values[0] | values[1]

    def of_mode(self, constants: tuple[int, ...]) -> Value:
        """The constant of the mode, without a register."""
        width = max(max(constants).bit_length(), 1)
        if len(set(constants)) == 1:
            return Const(constants[0], width)
        return choose([Const(value, width) for value in constants], self.value("mode"))

    def phase(self, number: int) -> Value:
        """Whether a flit within a window was read some cycles ago."""
        return self.value("phase")[number]

    def advance(self, ends_block: Value | None) -> Value | int:
        """By how much an address grows, given whether its word is the last of a block."""
        return 1 if ends_block is None else Mux(ends_block, self.value("skip"), 1)

    def ends_block(self, phase: int) -> Value:
        """Whether the last flit of a block was read as many cycles ago as one in a phase."""
        return self.phase(self._endpoint.settings.windows.ends(phase))


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


def add_reader(endpoint: Endpoint, inputs: Inputs, shape: EndpointReader) -> Reader:
    """Add what makes the addresses of a reader."""
    sending = Const(1) if shape.sending is None else inputs.at(shape.sending)
    code = None if shape.code is None else inputs.at(shape.code)
    return Reader(shape, _given_address(endpoint, inputs, shape), code, sending)


def _given_address(endpoint: Endpoint, inputs: Inputs, shape: EndpointReader) -> Value:
    """The address that follows from a column of the sequencer, and a base if there is one."""
    where = shape.address
    address = inputs.value(f"read_{shape.column}")
    if not where.at_node:
        return address
    base, shift = inputs.at(where), where.shift
    if shift is None:
        address = base + address
    else:
        # The sequencer gives whole addresses in modes in which the base is 0.
        address = Cat(address[:shift], base | address[shift:] if where.joins else base)
    return address[: endpoint.settings.address_bits]
