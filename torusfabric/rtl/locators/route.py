"""Locators of oblivious programs: by positions on routes."""

from typing import NamedTuple

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ...program import Program, RouteMap
from ...program.routes import Route
from ...topology import IntArray
from ..columns import Columns
from ..delays import delayed
from .base import Locator

__all__ = ["RouteLocator", "affine"]


class Affine(NamedTuple):
    """How values follow from others: ``sign * base + offset``."""

    sign: int
    offset: int


class Numbering(NamedTuple):
    """Numbers of nodes and origins, the difference of which gives the step.

    The step less one is ``sign * (nodes[node] - origins[origin]) + offset`` modulo the length of
    the flow; the offset is 0 or -1.
    """

    nodes: IntArray
    origins: IntArray
    sign: int
    offset: int


def affine(base: IntArray, values: IntArray, modulus: int) -> Affine | None:
    """Sign and offset by which values follow from others.

    Parameters
    ----------
    base, values : ndarray of int
        Numbers below the modulus; negative where absent.
    modulus : int

    Returns
    -------
    Affine or None
        Such that ``values = sign * base + offset`` modulo the modulus wherever values are present.
    """
    there = values >= 0
    if not there.any() or (base[there] < 0).any():
        return None
    for sign in (1, -1):
        offset = (values[there] - sign * base[there]) % modulus
        if (offset == offset[0]).all():
            return Affine(sign, int(offset[0]))
    return None


class RouteLocator(Locator):
    """Finds blocks by the positions of in-arcs and origins on their flows.

    Each route compares two numbers, one read from a ROM of the nodes and one from a ROM of the
    origins; the two directions of a cycle share their numbering.

    Parameters
    ----------
    program : Program
        With a `RouteMap`.
    """

    latency = 3

    def __init__(self, program: Program) -> None:
        mapped = program.mode.receive_map
        assert isinstance(mapped, RouteMap)
        self._program, self._map = program, mapped
        waves = program.block_flits
        super().__init__(
            nodes=program.groups.size,
            chunks=program.schedule.chunks,
            flits=waves,
            memories=len(program.memories),
            depth=self._map.steps * waves,
        )

    def elaborate(self, platform: object) -> Module:
        """Build the search of all routes, and choose the one that holds the answer."""
        m = Module()
        by_node, by_origin = self.columns(self.node), self.columns(self.origin)
        chunk = delayed(m, self.chunk, 1)
        numberings: list[IntArray] = []
        bank, step = Const(0), Const(0)
        for route in reversed(self._map.routes):
            numbering = _common_numbering(numberings, route)
            hit, port, near = self._search(m, route, numbering, by_node, by_origin, chunk)
            bank, step = Mux(hit, port, bank), Mux(hit, near, step)
        by_node.build(m, "nodes")
        by_origin.build(m, "origins")
        own = delayed(m, self.node == self.origin, 2)
        address = delayed(m, self.flit, 2) * self._map.steps + step
        m.d.sync += [
            self.bank.eq(Mux(own, self._map.own + delayed(m, chunk, 1), bank)),
            self.address.eq(Mux(own, delayed(m, self.flit, 2), address)),
        ]
        return m

    def _search(
        self,
        m: Module,
        route: Route,
        numbering: Numbering,
        by_node: Columns,
        by_origin: Columns,
        chunk: Value,
    ) -> tuple[Value, Value, Value]:
        """Whether a route holds the answer, in which memory, and the step less one.

        It takes two cycles: one to look up both numbers, one for their difference.
        """
        at_values, of_values, sign, offset = numbering
        modulus, steps = route.length or 2 * (at_values.max() + 1), self._map.steps
        at, of = by_node.read(np.maximum(at_values, 0)), by_origin.read(np.maximum(of_values, 0))
        difference = (at - of if sign > 0 else of - at) + offset
        distance = Mux(difference < 0, difference + int(modulus), difference)
        hits = [
            by_node.read(np.where(route.position >= 0, 1, 0)),
            by_origin.read(np.where(route.entry >= 0, 1, 0)),
        ]
        if not route.length:
            hits.append(difference >= 0)
        if steps < modulus:
            hits.append(distance < steps)
        if (route.tail > 0).any():
            hits.append(distance >= by_node.read(np.maximum(route.tail, 0)))
        if self._program.schedule.chunks > 1:
            hits.append(chunk == route.chunk)
        hit, near = Signal(reset_less=True), Signal(range(max(steps, 2)), reset_less=True)
        m.d.sync += [hit.eq(Cat(*hits).all()), near.eq(distance)]
        return hit, delayed(m, by_node.read(route.port), 1), near


def _common_numbering(known: list[IntArray], route: Route) -> Numbering:
    """Write both numbers of a route in one numbering, an earlier one if possible.

    Parameters
    ----------
    known : list of ndarray
        Numberings in use; extended where none serves.
    route : Route

    Returns
    -------
    Numbering
    """
    modulus = route.length
    for base in [*known, route.position] if modulus else []:
        at, of = affine(base, route.position, modulus), affine(base, route.entry, modulus)
        if at and of and at.sign == of.sign and (of.offset - at.offset) % modulus in (0, 1):
            if not any(base is other for other in known):
                known.append(base)
            return Numbering(base, base, at.sign, -int((of.offset - at.offset) % modulus))
    return Numbering(route.position, route.entry, 1, 0)
