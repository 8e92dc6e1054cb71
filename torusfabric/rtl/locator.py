"""Locators: where a node stores a flit, for the host that asks by origin.

Nodes store what arrives in the order in which it arrives. A locator turns (node, origin, chunk,
flit) into a bank and an address, once for the whole fabric: no flit carries a header, and no node
translates anything.
"""

import numpy as np
from amaranth.hdl import Cat, Const, Fragment, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..program import OWN
from .memories import add_rom, address_width

__all__ = ["TableLocator", "WaveLocator", "affine"]


class Locator(wiring.Component):
    """What every locator has.

    Attributes
    ----------
    latency : int
        Cycles from a question to its answer; a question may be put in every cycle.

    Members
    -------
    node, origin, chunk, flit : In
        The question: a flit counts within its chunk.
    bank, address : Out
        The answer.
    """

    latency: int

    def __init__(self, *, nodes, chunks, flits, banks, depth):
        super().__init__(
            {
                "node": In(address_width(nodes)),
                "origin": In(address_width(nodes)),
                "chunk": In(address_width(chunks)),
                "flit": In(address_width(flits)),
                "bank": Out(address_width(banks)),
                "address": Out(address_width(depth)),
            }
        )
        self._tables: list[Columns] = []

    def columns(self, address):
        """A ROM of this locator."""
        self._tables.append(Columns(address))
        return self._tables[-1]

    def rom_bits(self):
        """Bits of all its ROMs."""
        self._tables.clear()
        Fragment.get(self, None)
        return sum(table.bits for table in self._tables)

    @staticmethod
    def delayed(m, value, cycles):
        """A value some cycles later."""
        for _ in range(cycles):
            later = Signal(len(value), reset_less=True)
            m.d.sync += later.eq(value)
            value = later
        return value


def affine(base, values, modulus):
    """Sign and offset by which values follow from others.

    Parameters
    ----------
    base, values : ndarray of int
        Numbers below the modulus; negative where absent.
    modulus : int

    Returns
    -------
    (int, int) or None
        (s, a) such that ``values = s * base + a`` modulo the modulus wherever values are present.
    """
    there = values >= 0
    if not there.any() or (base[there] < 0).any():
        return None
    for sign in (1, -1):
        offset = (values[there] - sign * base[there]) % modulus
        if (offset == offset[0]).all():
            return sign, int(offset[0])
    return None


class Columns:
    """A ROM of many columns that share an address; equal columns are one, and constant ones none.

    Parameters
    ----------
    address : Value
    """

    def __init__(self, address):
        self._address = address
        self._columns: dict[bytes, tuple[np.ndarray, Signal]] = {}

    def read(self, values):
        """A value one cycle after its address.

        Parameters
        ----------
        values : ndarray of int
            Not negative.

        Returns
        -------
        Value
        """
        width = max(int(values.max()).bit_length(), 1)
        if (values == values[0]).all():
            return Const(int(values[0]), width)
        key = np.asarray(values, "<i8").tobytes()
        if key not in self._columns:
            self._columns[key] = (values, Signal(width, name=f"column_{len(self._columns)}"))
        return self._columns[key][1]

    @property
    def bits(self):
        """Bits of the ROM."""
        return sum(len(values) * len(signal) for values, signal in self._columns.values())

    def build(self, m, name):
        """Add the ROM to a module, once all columns are known."""
        if not self._columns:
            return
        values, signals = zip(*self._columns.values(), strict=True)
        rows, shift = [0] * len(values[0]), 0
        for column, signal in zip(values, signals, strict=True):
            rows = [row | int(v) << shift for row, v in zip(rows, column, strict=True)]
            shift += len(signal)
        m.d.comb += Cat(*signals).eq(
            add_rom(m, name, rows=rows, width=shift, address=self._address)
        )


class WaveLocator(Locator):
    """Finds blocks by the places of in-arcs and origins on their streams.

    Each route compares two numbers, one read from a ROM of the nodes and one from a ROM of the
    origins; the two directions of a cycle share their numbering.

    Parameters
    ----------
    program : WaveProgram
    waves : int
    """

    latency = 3

    def __init__(self, program, waves):
        self._program, self._waves = program, waves
        topology, chunks = program.topology, program.schedule.chunks
        super().__init__(
            nodes=topology.nodes,
            chunks=chunks,
            flits=waves,
            banks=topology.ports + chunks,
            depth=program.steps * waves,
        )

    def elaborate(self, platform):
        m = Module()
        program, ports = self._program, self._program.ports
        by_node, by_origin = self.columns(self.node), self.columns(self.origin)
        chunk = self.delayed(m, self.chunk, 1)
        numbering: list[np.ndarray] = []
        bank, step = Const(0), Const(0)
        for route in reversed(program.routes):
            forms = _common_numbering(numbering, route)
            hit, port, place = self._search(m, route, forms, by_node, by_origin, chunk)
            bank, step = Mux(hit, port, bank), Mux(hit, place, step)
        by_node.build(m, "nodes")
        by_origin.build(m, "origins")
        own = self.delayed(m, self.node == self.origin, 2)
        address = self.delayed(m, self.flit, 2) * program.steps + step
        m.d.sync += [
            self.bank.eq(Mux(own, ports + self.delayed(m, chunk, 1), bank)),
            self.address.eq(Mux(own, self.delayed(m, self.flit, 2), address)),
        ]
        return m

    def _search(self, m, route, forms, by_node, by_origin, chunk):
        """Whether a route holds the answer, in which bank, and the step less one: in two cycles."""
        at_values, of_values, sign, offset = forms
        modulus, steps = route.length or 2 * (at_values.max() + 1), self._program.steps
        at, of = by_node.read(np.maximum(at_values, 0)), by_origin.read(np.maximum(of_values, 0))
        difference = (at - of if sign > 0 else of - at) + offset
        place = Mux(difference < 0, difference + int(modulus), difference)
        hits = [
            by_node.read(np.where(route.position >= 0, 1, 0)),
            by_origin.read(np.where(route.entry >= 0, 1, 0)),
        ]
        if not route.length:
            hits.append(difference >= 0)
        if steps < modulus:
            hits.append(place < steps)
        if (route.tail > 0).any():
            hits.append(place >= by_node.read(np.maximum(route.tail, 0)))
        if self._program.schedule.chunks > 1:
            hits.append(chunk == route.chunk)
        hit, near = Signal(reset_less=True), Signal(range(max(steps, 2)), reset_less=True)
        m.d.sync += [hit.eq(Cat(*hits).all()), near.eq(place)]
        return hit, self.delayed(m, by_node.read(route.port), 1), near


def _common_numbering(known, route):
    """Write both numbers of a route in one numbering, an earlier one if possible.

    Parameters
    ----------
    known : list of ndarray
        Numberings in use; extended where none serves.
    route : Route

    Returns
    -------
    (ndarray, ndarray, int, int)
        Numbers a for nodes and b for origins, a sign and an offset of 0 or -1, such that the step
        less one is ``sign * (a[node] - b[origin]) + offset`` modulo the length of the stream.
    """
    modulus = route.length
    for base in [*known, route.position] if modulus else []:
        at, of = affine(base, route.position, modulus), affine(base, route.entry, modulus)
        if at and of and at[0] == of[0] and (of[1] - at[1]) % modulus in (0, 1):
            if not any(base is other for other in known):
                known.append(base)
            return base, base, at[0], -int((of[1] - at[1]) % modulus)
    return route.position, route.entry, 1, 0


class TableLocator(Locator):
    """Finds blocks in a table.

    Where all nodes of an endpoint class store what has the same offset from them in the same place,
    the table has a row for each class and offset; else one for each node and origin.

    Parameters
    ----------
    program : RoundProgram
    flits : int
        Flits of a block.
    """

    def __init__(self, program, flits):
        self._program, self._flits = program, flits
        topology, chunks = program.topology, program.schedule.chunks
        self._origins = program.layout.recv_blocks // chunks
        self._by_offset = self._rows_by_offset()
        self.latency = 2 if self._by_offset is None else 4
        deepest = max((max(e.depth) for e in program.endpoints), default=1)
        super().__init__(
            nodes=topology.nodes,
            chunks=chunks,
            flits=flits,
            banks=topology.ports + 1,
            depth=max(deepest, 1) * flits,
        )

    def _places(self):
        """Bank and slot of each (node, origin, chunk)."""
        program = self._program
        shape = (program.topology.nodes, self._origins, program.schedule.chunks)
        bank = np.where(program.bank == OWN, program.ports, program.bank)
        places = bank, np.maximum(program.slot, 0)
        return tuple(self._drop_single(place.reshape(shape)) for place in places)

    @staticmethod
    def _drop_single(table):
        """Leave out the axes of origin and chunk where there is only one."""
        return table.squeeze(tuple(axis for axis in (1, 2) if table.shape[axis] == 1))

    def _rows_by_offset(self):
        """The table by class and offset, or None where a table by node is smaller or needed."""
        program, topology = self._program, self._program.topology
        if self._origins == 1 or topology.nodes**2 * program.schedule.chunks <= DIRECT_ROWS:
            return None
        nodes = np.arange(topology.nodes)
        origin = topology.add(nodes[:, None], nodes[None, :])
        bank, slot = (place[nodes[:, None], origin] for place in self._places())
        rows = []
        for number in range(len(program.endpoints)):
            members = np.nonzero(program.endpoint_class == number)[0]
            for place in (bank, slot):
                if (place[members] != place[members[0]]).any():
                    return None
            rows.append((bank[members[0]], slot[members[0]]))
        chunks = program.schedule.chunks
        shape = (len(rows), *topology.moduli, *([chunks] if chunks > 1 else []))
        place = np.ravel_multi_index(tuple(topology.coordinates(nodes)), topology.moduli)
        order = np.argsort(place)
        return tuple(
            np.stack(places)[:, order].reshape(shape) for places in zip(*rows, strict=True)
        )

    def elaborate(self, platform):
        m = Module()
        if self._by_offset is None:
            wait, places = 0, self._places()
            key = [self.node, *([self.origin] if self._origins > 1 else [])]
        else:
            wait, places = 2, self._by_offset
            key = self._class_and_offset(m)
        if self._program.schedule.chunks > 1:
            key.append(self.delayed(m, self.chunk, wait))
        table = self.columns(Cat(*reversed(key)))
        bank, slot = (_table(values, [len(part) for part in key]) for values in places)
        bank, base = table.read(bank), table.read(slot * self._flits)
        table.build(m, "table")
        flit = self.delayed(m, self.flit, wait + 1)
        m.d.sync += [self.bank.eq(bank), self.address.eq(base + flit)]
        return m

    def _class_and_offset(self, m):
        """The key of a table by class and offset, after two cycles."""
        program, topology = self._program, self._program.topology
        by_node, by_origin = self.columns(self.node), self.columns(self.origin)
        number = self.delayed(m, by_node.read(program.endpoint_class), 1)
        places = topology.coordinates(np.arange(topology.nodes))
        offsets = []
        for place, side in zip(places, topology.moduli, strict=True):
            difference = by_origin.read(place) - by_node.read(place)
            offset = Signal(range(side), reset_less=True)
            m.d.sync += offset.eq(Mux(difference < 0, difference + side, difference))
            offsets.append(offset)
        by_node.build(m, "nodes")
        by_origin.build(m, "origins")
        return [number, *offsets]


#: A table of at most so many rows is addressed by node and origin; it needs no subtraction.
DIRECT_ROWS = 4096


def _table(values, bits):
    """A table as rows that are addressed by its indices, side by side.

    Parameters
    ----------
    values : ndarray of int
    bits : list of int
        Width of each index, that of the first axis first.
    """
    return np.pad(
        values, [(0, (1 << b) - n) for b, n in zip(bits, values.shape, strict=True)]
    ).ravel()
