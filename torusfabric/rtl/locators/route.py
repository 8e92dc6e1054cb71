"""Locators of oblivious programs: by positions on routes."""

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal

from ..delays import delayed
from .base import Locator

__all__ = ["RouteLocator", "affine"]


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


class RouteLocator(Locator):
    """Finds blocks by the places of in-arcs and origins on their streams.

    Each route compares two numbers, one read from a ROM of the nodes and one from a ROM of the
    origins; the two directions of a cycle share their numbering.

    Parameters
    ----------
    program : Program
        With a `RouteMap`.
    """

    latency = 3

    def __init__(self, program):
        self._program, self._map = program, program.mode.receive_map
        waves = program.block_flits
        topology, chunks = program.topology, program.schedule.chunks
        super().__init__(
            nodes=topology.nodes,
            chunks=chunks,
            flits=waves,
            banks=topology.ports + chunks,
            depth=self._map.steps * waves,
        )

    def elaborate(self, platform):
        m = Module()
        ports = self._program.ports
        by_node, by_origin = self.columns(self.node), self.columns(self.origin)
        chunk = delayed(m, self.chunk, 1)
        numbering: list[np.ndarray] = []
        bank, step = Const(0), Const(0)
        for route in reversed(self._map.routes):
            forms = _common_numbering(numbering, route)
            hit, port, place = self._search(m, route, forms, by_node, by_origin, chunk)
            bank, step = Mux(hit, port, bank), Mux(hit, place, step)
        by_node.build(m, "nodes")
        by_origin.build(m, "origins")
        own = delayed(m, self.node == self.origin, 2)
        address = delayed(m, self.flit, 2) * self._map.steps + step
        m.d.sync += [
            self.bank.eq(Mux(own, ports + delayed(m, chunk, 1), bank)),
            self.address.eq(Mux(own, delayed(m, self.flit, 2), address)),
        ]
        return m

    def _search(self, m, route, forms, by_node, by_origin, chunk):
        """Whether a route holds the answer, in which bank, and the step less one: in two cycles."""
        at_values, of_values, sign, offset = forms
        modulus, steps = route.length or 2 * (at_values.max() + 1), self._map.steps
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
        return hit, delayed(m, by_node.read(route.port), 1), near


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
