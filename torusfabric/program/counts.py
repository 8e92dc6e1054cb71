"""What is counted of programs, for reports and to choose between them, before anything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .fields import IDLE, Action
from .merge import send_layout

if TYPE_CHECKING:
    from ..topology import BoolArray, IntArray
    from .fields import Loop
    from .mode import Form
    from .program import Program

__all__ = ["CrossbarInputs", "HardwareParts", "count_inputs", 
           "estimated_luts", "hardware_parts", "joint_luts"]  # fmt: skip

#: Bits that a look-up table holds.
LUT_BITS = 16

#: Bits of a row of a ROM for each reader: the memory, where in it, and whether it reads.
READER_BITS = 3


class CrossbarInputs(NamedTuple):
    """Inputs of out-ports, counted over all out-ports of all nodes.

    Parameters
    ----------
    total, shared : int
        What out-ports select from in any mode, and in two or more.
    of_modes, own : tuple of int
        What they select from in each mode, and in that mode alone.
    """

    total: int
    shared: int
    of_modes: tuple[int, ...]
    own: tuple[int, ...]


def count_inputs(program: Program) -> CrossbarInputs:
    """Count the inputs of all out-ports.

    Examples
    --------
    Each of 36 out-ports injects, and passes on what comes by other in-ports in one mode than in the
    other one.

    >>> import torusfabric as tf
    >>> plans = [tf.plan("3x3", name) for name in ("allgather", "alltoall")]
    >>> count_inputs(tf.compile(plans, max_flits=2))
    CrossbarInputs(total=123, shared=21, of_modes=(72, 72), own=(51, 51))
    """
    used = np.stack(
        [np.any([_used(program, form) for form in mode.forms], axis=0) for mode in program.modes]
    )
    count = used.sum(axis=0)
    return CrossbarInputs(
        total=int((count > 0).sum()),
        shared=int((count > 1).sum()),
        of_modes=tuple(used.sum(axis=(1, 2, 3)).tolist()),
        own=tuple((used & (count == 1)).sum(axis=(1, 2, 3)).tolist()),
    )


def _used(program: Program, form: Form) -> BoolArray:
    """Of each node, out-port and source, whether a form selects it.

    Where a node may be at any offset from the root, all have the same crossbar.
    """
    select = form.loop.select
    sources = max(int(each.loop.select.max()) for each in program.forms) + 1
    of_variant = np.stack([(select == source).any(axis=0) for source in range(sources)], axis=-1)
    of_nodes = of_variant[program.variant_at if form.by_offset else program.variant_of]
    if not program.by_offset:
        return of_nodes
    return np.broadcast_to(of_nodes.any(axis=0), of_nodes.shape)


def estimated_luts(program: Program, *, width: int = 32) -> int:
    """Look-up tables of a node, as if all memories were made of them, for flits of so many bits.

    Counted are memories, with a copy for each reader that reads them at once, what chooses between
    words, operators, and ROMs that are addressed by the offset from the root. Where nodes differ,
    it is the mean.

    Examples
    --------
    A gather to any root needs as much memory as an all-gather, and ROMs besides.

    >>> import torusfabric as tf
    >>> gather = tf.compile(tf.plan("8x8", "gather"), flits=4, root="any")
    >>> allgather = tf.compile(tf.plan("8x8", "allgather"), flits=4)
    >>> estimated_luts(gather), estimated_luts(allgather)
    (1568, 704)
    """
    return joint_luts([hardware_parts(program)], width=width)


class HardwareParts(NamedTuple):
    """Look-up tables of a bit of a node, as if all memories were made of them: means over nodes.

    Parameters
    ----------
    received : float
        Memories of words that arrive or are computed.
    sent : mapping of object to float
        Memories of the words that the host writes, by their layout.
    choosing : float
        Tables that choose between words, or combine them.
    chosen : float
        Out-ports and operands that choose, or take, words.
    rom_bits : int
        Bits of the ROMs of a node, for any root.
    """

    received: float
    sent: Mapping[object, float]
    choosing: float
    chosen: float
    rom_bits: int


def hardware_parts(program: Program) -> HardwareParts:
    """Return the parts of a node that forms share or have of their own."""
    loop, used = program.loop, np.bincount(program.variant_of, minlength=len(program.depth))
    # A memory has a copy for each reader that reads it at once.
    read = np.stack([field.values for field in loop.of(Action.MEMORY)])
    copies = [max(int((read == k).sum(axis=0).max()), 1) for k in range(len(program.memories))]
    stored = used @ (-(-program.depth // LUT_BITS) * copies) / int(used.sum())
    variants = range(loop.variants)
    # A node may be at any offset from the root in some programs: then all choose alike.
    chosen = (
        [_words_chosen(loop, [*variants])] * loop.variants
        if program.by_offset
        else [_words_chosen(loop, [variant]) for variant in variants]
    )
    settings = (*loop.of(Action.SELECT), *loop.of(Action.OPERAND))
    set_points: IntArray = np.sum([(each.values != IDLE).any(axis=0) for each in settings], axis=0)
    sent: dict[object, float] = {}
    alone = len(program.forms) == 1
    for memory, luts in zip(program.memories, stored.tolist(), strict=True):
        if memory.own:
            layout = send_layout(program) if alone else memory.layout
            sent[layout] = sent.get(layout, 0) + luts
    # ROMs have rows for every offset from the root.
    bits = loop.ports + len(program.memories) + READER_BITS * loop.sources.readers
    return HardwareParts(
        received=float(stored.sum()) - sum(sent.values()),
        sent=sent,
        choosing=float(np.array(chosen) @ used) / int(used.sum()),
        chosen=float(set_points @ used) / int(used.sum()),
        rom_bits=loop.rows * program.groups.size * bits if program.by_offset else 0,
    )


def joint_luts(forms: Sequence[HardwareParts], *, width: int = 32) -> int:
    """Look-up tables of a node with several forms, for flits of so many bits.

    Forms share the memories of what arrives, as large as the largest needs, and those of what is
    sent where these are laid out alike. What chooses words is counted for each form, and for each
    form but one a table more at each of its out-ports and operands, to choose among the forms.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plans = [tf.plan("4x4", "allgather", algorithm=name) for name in ("matching", "bufferless")]
    >>> one, other = (hardware_parts(tf.compile(plan, max_flits=64)) for plan in plans)
    >>> joint_luts([one]), joint_luts([other]), joint_luts([one, other])
    (2304, 2304, 2688)
    """
    received = max(form.received for form in forms)
    sent: dict[object, float] = {}
    for form in forms:
        for layout, luts in form.sent.items():
            sent[layout] = max(sent.get(layout, 0), luts)
    chosen = [form.chosen for form in forms]
    bits = received + sum(sent.values()) + sum(form.choosing for form in forms)
    bits += sum(chosen) - max(chosen)
    return round(bits * width + sum(form.rom_bits for form in forms) / LUT_BITS)


def _words_chosen(loop: Loop, variants: list[int]) -> int:
    """Look-up tables of a bit that choose between words, or combine them."""
    choosing = (Action.SELECT, Action.OPERAND, Action.MEMORY)
    inputs = [
        len(np.unique(field.values[:, variants][field.values[:, variants] != IDLE]))
        for field in loop.fields
        if field.point.action in choosing
    ]
    combined = sum(len(readers) - 1 for readers in loop.sources.injections)
    combined += loop.ports if loop.combining else 0
    # Two inputs take a look-up table, and two more another.
    return combined + sum(-(-count // 2) for count in inputs if count > 1)
