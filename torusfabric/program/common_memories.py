"""Common memories: those that modes share, and the send maps by which the host writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray
from .address_map import DirectMap, OffsetMap
from .fields import Memory

if TYPE_CHECKING:
    from collections.abc import Hashable

    from .program import Program

__all__ = ["CommonMemories"]


class CommonMemories:
    """The memories of a node: what comes by an in-port shares memories in all modes.

    What the host writes shares a memory with what another mode sends only if both keep it at the
    same addresses: the host writes before it is known which mode will read.

    Attributes
    ----------
    joint : list of Memory
    numbers : list of ndarray of int
        Of each program, the common number of each of its memories.
    layouts : list of int
        Of each program, the number of its send map among those that differ.
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        self.joint: list[Memory] = []
        self.numbers: list[IntArray] = []
        self.layouts: list[int] = []
        known: dict[Hashable, int] = {}
        layouts: dict[Hashable, int] = {}
        for program in programs:
            layout = layouts.setdefault(_send_layout(program), len(layouts))
            self.layouts.append(layout)
            used: dict[Hashable, int] = {}
            numbers = []
            for number, memory in enumerate(program.memories):
                key: Hashable = self._key(program, number, layout)
                key = key, used.setdefault(key, 0)
                used[key[0]] += 1
                at = known.setdefault(key, len(self.joint))
                if at == len(self.joint):
                    self.joint.append(replace(memory, layout=layout))
                else:
                    ports = sorted({*self.joint[at].ports, *memory.ports})
                    self.joint[at] = replace(self.joint[at], ports=tuple(ports))
                numbers.append(at)
            self.numbers.append(np.array(numbers))

    @staticmethod
    def _key(program: Program, number: int, layout: int) -> Hashable:
        """What memories have in common that are one."""
        memory = program.memories[number]
        if not memory.own:
            return memory.ports
        return layout, number - _first_own(program)


def _first_own(program: Program) -> int:
    """The first memory that the host writes."""
    return next(number for number, memory in enumerate(program.memories) if memory.own)


def _send_layout(program: Program) -> Hashable:
    """Where the host's words lie that a node sends; equal where all lie at the same addresses."""
    mapped, layout = program.mode.send_map, program.layout
    facts = program.schedule.chunks, layout.part_chunks, layout.send_parts, layout.in_shares
    match mapped:
        case DirectMap():
            by_chunk = mapped.by_chunk and mapped.chunks > 1
            return "direct", facts, mapped.chunks, mapped.flits, by_chunk, mapped.base
        case OffsetMap():
            tables = mapped.memory - _first_own(program), mapped.base
            groups = tuple(program.groups.ports)
            return "offset", facts, groups, mapped.ahead, *(table.tobytes() for table in tables)
    return id(program)
