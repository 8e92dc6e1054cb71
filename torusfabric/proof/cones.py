"""What bits of a module depend on, within a cycle or over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from .gates import Bit, GateModule

__all__ = ["Cone", "cone"]


class Cone(NamedTuple):
    """What some bits depend on.

    Parameters
    ----------
    bits : set of int
    rams : dict of int to (set of int)
        Of each memory, the positions in its word.
    """

    bits: set[int]
    rams: dict[int, set[int]]


def cone(module: GateModule, wanted: Collection[Bit], *, through_flops: bool = True) -> Cone:
    """What bits of a module depend on, at once or over time.

    Parameters
    ----------
    module : GateModule
    wanted : collection of Bit
    through_flops : bool
        Whether also over time; else registers and memories are where it ends.
    """
    gate_of = {gate.y: gate for gate in module.gates}
    flop_of = {flop.q: flop.d for flop in module.flops} if through_flops else {}
    read_of = {
        bit: (number, address, k)
        for number, ram in enumerate(module.rams)
        for address, data in ram.reads
        for k, bit in enumerate(data)
    }
    found, left = Cone(set(), defaultdict(set)), list(wanted)
    while left:
        bit = left.pop()
        if isinstance(bit, str) or bit in found.bits:
            continue
        found.bits.add(bit)
        if bit in gate_of:
            left += gate_of[bit][2:]
        elif bit in flop_of:
            left.append(flop_of[bit])
        elif bit in read_of:
            number, address, k = read_of[bit]
            left += address
            found.rams[number].add(k)
            for at, data, enable in module.rams[number].writes:
                left += [*at, enable[k]]
                left += [data[k]] if through_flops else []
    return found
