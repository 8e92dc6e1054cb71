"""Estimates of the hardware of programs, for reports and for the choice between programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .fields import IDLE, Action
from .merge import message_layout_key

if TYPE_CHECKING:
    from ..topology import BoolArray, IntArray
    from .fields import Loop
    from .mode import Form
    from .program import Program

__all__ = ["CrossbarInputs", "HardwareParts", "count_inputs", 
           "estimate_luts", "estimate_parts", "estimate_joint_luts"]  # fmt: skip

#: Bits of a LUT that is used as memory.
BITS_PER_LUT = 16

#: Bits of a ROM row for each reader: memory, address, read enable.
ROM_BITS_PER_READER = 3


class CrossbarInputs(NamedTuple):
    """Numbers of crossbar inputs, summed over all out-ports of all nodes.

    An input of an out-port is a source from which the out-port takes words in some row.

    Parameters
    ----------
    total, shared : int
        Inputs that at least one mode uses, and inputs that two or more modes use.
    of_modes, own : tuple of int
        For each mode, inputs that it uses, and those of them that no other mode uses.
    """

    total: int
    shared: int
    of_modes: tuple[int, ...]
    own: tuple[int, ...]


def count_inputs(program: Program) -> CrossbarInputs:
    """Count the inputs of all out-ports of a fabric.

    Examples
    --------
    There are 36 out-ports. Each takes words from the memories of its node (an injection port), and
    forwards words of different in-ports in the two modes.

    >>> import torusfabric as tf
    >>> plans = [tf.plan("3x3", name) for name in ("allgather", "alltoall")]
    >>> count_inputs(tf.compile(plans, max_flits=2))
    CrossbarInputs(total=132, shared=12, of_modes=(72, 72), own=(60, 60))
    """
    used = np.stack(
        [
            np.any([_selected_sources(program, form) for form in mode.forms], axis=0)
            for mode in program.modes
        ]
    )
    count = used.sum(axis=0)
    return CrossbarInputs(
        total=int((count > 0).sum()),
        shared=int((count > 1).sum()),
        of_modes=tuple(used.sum(axis=(1, 2, 3)).tolist()),
        own=tuple((used & (count == 1)).sum(axis=(1, 2, 3)).tolist()),
    )


def _selected_sources(program: Program, form: Form) -> BoolArray:
    """Return a table of the sources from which out-ports take words in some row of a form.

    The shape is (nodes, out-ports, sources), and entries are True or False. A source is a component
    whose words out-ports can select, such as an in-port. If runs choose the root, each node can be
    at any offset from it, so all nodes have the same entries.
    """
    select = form.loop.selected_sources
    sources = max(int(each.loop.selected_sources.max()) for each in program.forms) + 1
    of_variant = np.stack([(select == source).any(axis=0) for source in range(sources)], axis=-1)
    of_nodes = of_variant[program.variant_at if form.by_offset else program.variant_of]
    if not program.by_offset:
        return of_nodes
    return np.broadcast_to(of_nodes.any(axis=0), of_nodes.shape)


def estimate_luts(program: Program, *, width: int = 32) -> int:
    """Return the estimated LUTs of a node, the mean over all nodes, with all memories made of LUTs.

    The estimate comprises memories, with a copy for each simultaneous reader; multiplexers and
    operators; and ROMs that are addressed by the offset from the root.

    Parameters
    ----------
    width : int
        Bits of a flit.

    Examples
    --------
    A gather to any root needs as much memory as an all-gather, and ROMs besides.

    >>> import torusfabric as tf
    >>> gather = tf.compile(tf.plan("8x8", "gather"), flits=4, root="any")
    >>> allgather = tf.compile(tf.plan("8x8", "allgather"), flits=4)
    >>> estimate_luts(gather), estimate_luts(allgather)
    (1568, 704)
    """
    return estimate_joint_luts([estimate_parts(program)], width=width)


class HardwareParts(NamedTuple):
    """Hardware of a node, by purpose: LUTs for each bit of a flit, and bits of ROMs.

    The numbers are means over all nodes, except for `rom_bits`.

    Parameters
    ----------
    received : float
        LUTs of memories for words that arrive, and for results of operators.
    sent : mapping of object to float
        LUTs of memories for messages to send, by a key for the addresses of the message: forms with
        equal keys keep the message at the same addresses, and share these memories.
    choosing : float
        LUTs of multiplexers and operators.
    chosen : float
        Number of out-ports, and of operators behind in-ports, that are in use in some row.
    rom_bits : int
        Bits of the ROMs of a node that are addressed by its offset from the root; 0 if runs do not
        choose the root.
    """

    received: float
    sent: Mapping[object, float]
    choosing: float
    chosen: float
    rom_bits: int


def estimate_parts(program: Program) -> HardwareParts:
    """Return the LUTs that a program of one form needs at a node, by purpose."""
    loop, used = program.loop, np.bincount(program.variant_of, minlength=len(program.depth))
    # A memory has a copy for each simultaneous reader.
    read = np.stack([field.values for field in loop.fields_of_action(Action.MEMORY)])
    copies = [max(int((read == k).sum(axis=0).max()), 1) for k in range(len(program.memories))]
    stored = used @ (-(-program.depth // BITS_PER_LUT) * copies) / int(used.sum())
    variants = range(loop.n_variants)
    # If a node may be at any offset from the root, all nodes have the multiplexers of all offsets.
    chosen = (
        [_selection_luts(loop, [*variants])] * loop.n_variants
        if program.by_offset
        else [_selection_luts(loop, [variant]) for variant in variants]
    )
    settings = (*loop.fields_of_action(Action.SELECT), *loop.fields_of_action(Action.OPERAND))
    set_points: IntArray = np.sum([(each.values != IDLE).any(axis=0) for each in settings], axis=0)
    sent: dict[object, float] = {}
    alone = len(program.forms) == 1
    for memory, luts in zip(program.memories, stored.tolist(), strict=True):
        if memory.own:
            layout = message_layout_key(program) if alone else memory.layout
            sent[layout] = sent.get(layout, 0) + luts
    # ROMs have rows for every offset from the root.
    bits = loop.n_ports + len(program.memories) + ROM_BITS_PER_READER * loop.sources.n_readers
    return HardwareParts(
        received=float(stored.sum()) - sum(sent.values()),
        sent=sent,
        choosing=float(np.array(chosen) @ used) / int(used.sum()),
        chosen=float(set_points @ used) / int(used.sum()),
        rom_bits=loop.n_rows * program.groups.group_size * bits if program.by_offset else 0,
    )


def estimate_joint_luts(forms: Sequence[HardwareParts], *, width: int = 32) -> int:
    """Return the estimated LUTs of a node with several forms.

    Forms share memories for arriving words, of the largest size that a form needs. They share
    memories for messages if their keys in `HardwareParts.sent` are equal. Multiplexers are counted
    for each form. Every form but one adds a LUT per bit at each of its out-ports, and of its
    operators behind in-ports, to choose among the forms.

    Parameters
    ----------
    forms : sequence of HardwareParts
        Hardware of each form alone.
    width : int
        Bits of a flit.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plans = [tf.plan("4x4", "allgather", algorithm=name) for name in ("matching", "bufferless")]
    >>> one, other = (estimate_parts(tf.compile(plan, max_flits=64)) for plan in plans)
    >>> estimate_joint_luts([one]), estimate_joint_luts([other]), estimate_joint_luts([one, other])
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
    return round(bits * width + sum(form.rom_bits for form in forms) / BITS_PER_LUT)


def _selection_luts(loop: Loop, variants: list[int]) -> int:
    """Return the LUTs of multiplexers and operators of a node, for each bit of a flit.

    The node acts as one of `variants` in each run, so its multiplexers have the inputs of all of
    them. The inputs of a variant follow from the rows in `loop`.
    """
    choosing = (Action.SELECT, Action.OPERAND, Action.MEMORY)
    inputs = [
        len(np.unique(field.values[:, variants][field.values[:, variants] != IDLE]))
        for field in loop.fields
        if field.point.action in choosing
    ]
    combined = sum(len(readers) - 1 for readers in loop.sources.injections)
    combined += loop.n_ports if loop.has_operators else 0
    # A multiplexer takes one LUT for every two inputs.
    return combined + sum(-(-count // 2) for count in inputs if count > 1)
