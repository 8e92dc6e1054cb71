"""What all routers and endpoints of a fabric do, as plain data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import Self

from ..errors import InputError
from ..toolchain.values import natural
from ..topology import IntArray
from .fields import Memory
from .mode import Mode, block_flits

if TYPE_CHECKING:
    from ..collective import Blocks, Layout, Operator
    from ..schedule import Schedule
    from ..topology import Groups, Topology
    from .fields import Loop
    from .timing import Timing

__all__ = ["ProgramData"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ProgramData:
    """What all routers and endpoints of a fabric do, for messages of a length or of any up to it.

    Parameters
    ----------
    flits : int
        Flits of a message, or the most of them.
    modes : tuple of Mode
        One of them is chosen at the start of each run, if there are several.
    memories : tuple of Memory
        The memories of a node.
    depth : ndarray of int, shape (variants, memories)
        Words of each memory.
    variant_of : ndarray of int, shape (nodes,)
        The variant of each node; of a single mode by offset, of the node at each offset from the
        root.
    offset_variant_of : ndarray of int, shape (nodes,), or None
        Where there are several modes, some of them by offset: the variant of the node at each
        offset from the root in these modes.
    barrier : bool
        Whether there is a mode more, after all others, without data: nodes wait for one another.
    parts : tuple of Program
        Where there are several modes, what each would be alone: its memories have other numbers.
    """

    topology: Topology
    flits: int
    modes: tuple[Mode, ...]
    memories: tuple[Memory, ...]
    depth: IntArray
    variant_of: IntArray
    offset_variant_of: IntArray | None = None
    barrier: bool = False
    parts: tuple[Self, ...] = ()

    @property
    def mode(self) -> Mode:
        """The first mode."""
        return self.modes[0]

    def mode_number(self, mode: int | None) -> int:
        """The number of a mode; by default that of the first.

        Raises
        ------
        InputError
            If there is no such mode.
        """
        number = 0 if mode is None else natural("Mode", mode)
        if number >= len(self.modes):
            raise InputError(f"Mode must be from 0 to {len(self.modes) - 1}, not {mode}")
        return number

    def part(self, mode: int) -> Self:
        """What a mode would be alone."""
        return self.parts[self.mode_number(mode)] if self.parts else self

    def alone(self, mode: int) -> Self:
        """What a mode does, with the times that it has among the others."""
        if not self.several:
            return self
        part, merged = self.part(mode), self.modes[mode]
        timed = replace(part.mode, chosen=merged.chosen, write_delay=merged.write_delay)
        return replace(part, modes=(timed,))

    @property
    def several(self) -> bool:
        """Whether there are several modes."""
        return len(self.modes) > 1

    @property
    def schedule(self) -> Schedule:
        """What the only mode was compiled from."""
        return self.mode.schedule

    @property
    def loop(self) -> Loop:
        """The rows of the only mode."""
        return self.mode.loop

    @property
    def timing(self) -> Timing:
        """When what happens in the only mode."""
        return self.mode.timing

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The operators among which a run chooses, the same in all modes that combine words."""
        return next((mode.operators for mode in self.modes if mode.operators), ())

    @property
    def any_length(self) -> bool:
        """Whether the length of messages is chosen at the start of a run.

        Flit f of a message then lies in chunk ``f % chunks``, at ``f // chunks``; else chunks
        follow one another.
        """
        return self.mode.any_length

    @property
    def any_root(self) -> bool:
        """Whether the root is chosen at the start of a run, in any mode."""
        return any(mode.any_root for mode in self.modes)

    @property
    def root_groups(self) -> Groups:
        """The groups of nodes in which roots are positions, where they are chosen."""
        return next(mode.groups for mode in self.modes if mode.any_root)

    @property
    def variant_at(self) -> IntArray:
        """The variant of the node at each offset from the root, where that matters."""
        return self.variant_of if self.offset_variant_of is None else self.offset_variant_of

    @property
    def by_offset(self) -> bool:
        """Whether what a node does depends on its offset from the root, in any mode."""
        return any(mode.by_offset for mode in self.modes)

    @property
    def groups(self) -> Groups:
        """The groups of nodes of the only mode."""
        return self.mode.groups

    @property
    def ports(self) -> int:
        """Number of ports of a node."""
        return self.topology.ports

    @property
    def block_flits(self) -> int:
        """Flits of a block."""
        return block_flits(self.schedule, self.flits)

    @cached_property
    def blocks(self) -> Blocks:
        """The numbered blocks."""
        return self.schedule.blocks

    @cached_property
    def layout(self) -> Layout:
        """The memory layout of a node as the host addresses it."""
        return self.schedule.layout

    @property
    def send_words(self) -> int:
        """Words that a node sends, as the host writes them."""
        return self.layout.send_words(self.flits)

    @property
    def recv_words(self) -> int:
        """Words that a node receives, as the host reads them."""
        return self.layout.recv_words(self.flits)

    def length_of(self, length: int | None = None) -> int:
        """The flits of the messages of a run.

        Raises
        ------
        InputError
            If the program is not for messages of so many.
        """
        length = self.flits if length is None else natural("Length", length)
        if length == self.flits:
            return length
        if not self.any_length:
            raise InputError(f"Length must be {self.flits} flits, not {length}")
        if not 1 <= length <= self.flits:
            raise InputError(f"Length must be from 1 to {self.flits} flits, not {length}")
        return length

    def locate(self, word: IntArray, length: int) -> tuple[IntArray, IntArray, IntArray]:
        """Part, chunk and flit of the block in which words of hosts lie, elementwise.

        Words are counted as if parts followed one another without a gap.
        """
        layout, block = self.layout, block_flits(self.schedule, length)
        if not self.any_length:
            part, within = np.divmod(word, layout.part_flits(length))
            return part, *np.divmod(within, block)
        message, within = np.divmod(word, length)
        flit, chunk = np.divmod(within, self.schedule.chunks)
        share, chunk = np.divmod(chunk, layout.part_chunks)
        return message + share, chunk, flit

    def cycles(self, length: int | None = None, *, mode: int | None = None) -> int:
        """Clock edges from the start pulse to done.

        Parameters
        ----------
        length : int, optional
            Flits of a message, for a program of any length; by default as many as there may be.
        mode : int, optional
            Which of several collectives (default 0).
        """
        number = self.mode_number(mode)
        flits = block_flits(self.part(number).schedule, self.length_of(length))
        return self.modes[number].timing_of(flits).cycles

    @cached_property
    def digest(self) -> str:
        """A name for the content: hexadecimal SHA-256 over everything that hardware is made of."""
        digest = hashlib.sha256()
        _update(digest, (self.topology.to_json(), self.flits, self.any_length))
        _update(digest, (self.memories, self.depth, self.variant_of, self.offset_variant_of))
        if self.barrier:
            _update(digest, ("barrier",))
        for mode in self.modes:
            _update(digest, (mode.any_root, mode.by_offset, mode.write_delay, mode.loop))
            _update(digest, (tuple(map(str, mode.operators)), mode.schedule.collective.to_json()))
        return digest.hexdigest()

    def __repr__(self) -> str:
        modes = ", ".join(
            f"{mode.schedule.collective} by {mode.schedule.algorithm}" for mode in self.modes
        )
        cycles = " or ".join(str(self.cycles(mode=k)) for k in range(len(self.modes)))
        return (
            f"<Program {self.topology} {modes}: {self.flits} flits, {cycles} cycles, "
            f"{self.digest[:12]}>"
        )


def _update(digest: Any, value: Any) -> None:
    """Feed a digest an array of integers, a tuple or dataclass of values, or a value's `repr`."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.shape}".encode())
        digest.update(np.ascontiguousarray(value, dtype="<i8").data)
    elif isinstance(value, tuple):
        for item in value:
            _update(digest, item)
    elif is_dataclass(value):
        for item in fields(value):
            _update(digest, getattr(value, item.name))
    else:
        digest.update(repr(value).encode())
