"""`Program`: the actions of all routers and memories of a fabric, as data that can be executed.

The hardware generator builds a fabric from a program. `Program.execute` is the reference model of
a run of this fabric, and `Program.cycles` predicts the clock cycles of the run.

Nodes that act alike share a *variant* (see `torusfabric.program.fields`). A form is *by offset* if
a node acts according to its offset from the root. The *host* is the computer that writes messages
into the memories of the nodes, and reads the results. Its words are numbered *part* by part: a part
is the data of one origin or destination, or one share of a sum.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import Self

from ..collective import expected_words
from ..errors import InputError
from ..toolchain.public import public_class
from ..toolchain.values import parse_non_negative_int, parse_positive_int
from ..topology import IntArray, extra_faults
from .fields import Memory
from .mode import Form, Mode, Range, block_flits

if TYPE_CHECKING:
    from ..collective import Blocks, MemoryLayout, Operator
    from ..schedule import Schedule
    from ..topology import Groups, Topology
    from .fields import Loop
    from .operand_orders import OperandOrders
    from .timing import Timing

__all__ = ["Program", "require_width"]

#: The largest width of a flit, in bits.
MAX_WIDTH = 1024


@public_class
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Program:
    """The actions of all routers and memories of a fabric.

    Messages have one fixed length, or any length up to a limit. A *variant* is a set of nodes that
    act alike. A form is *by offset* if each node acts according to its offset from the root of the
    run; then variants are sets of offsets.

    Parameters
    ----------
    topology : Topology
        Network that the program runs on.
    flits : int
        Flits of a message, or the largest number if runs choose the length.
    forms : tuple of Form
        Forms of all modes, mode by mode. A run executes one of them, chosen at its start. A form
        has the rows of one schedule.
    memories : tuple of Memory
        Memories of a node, numbered alike at all nodes.
    depth : ndarray of int, shape (variants, memories)
        Words of each memory.
    variant_of : ndarray of int, shape (nodes,)
        Variant of each node. If the only form is by offset: variant of the node at each offset from
        the root.
    offset_variant_of : ndarray of int, shape (nodes,), or None
        Variant of the node at each offset from the root, for the forms that are by offset. None if
        there is only one form, or if no form is by offset.
    barrier : bool
        True if a further mode follows the others: a barrier, in which nodes wait for one another
        without data.
    parts : tuple of Program
        Given several forms, the program of each form alone, with its own memory numbers.
    served : tuple of (tuple of Range)
        For each mode, the ranges of message lengths, and the form that serves each range. By
        default each form is a mode.
    roots : tuple of int
        For each mode, the number of roots that have forms of their own (see `Mode`); by default 0.
    writable : bool
        True if the hardware keeps the actions in tables that a user can overwrite. The actions of
        each form are then in `parts`.
    of_beats : callable, optional
        Function that compiles the same schedules for another number of flits per beat, its argument
        `beat`. `by_beats` calls it.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="matching"), flits=4)
    >>> program.cycles()
    13
    """

    topology: Topology
    flits: int
    forms: tuple[Form, ...]
    memories: tuple[Memory, ...]
    depth: IntArray
    variant_of: IntArray
    offset_variant_of: IntArray | None = None
    barrier: bool = False
    parts: tuple[Self, ...] = ()
    served: tuple[tuple[Range, ...], ...] = ()
    roots: tuple[int, ...] = ()
    writable: bool = False
    of_beats: Callable[..., Self] | None = field(default=None, repr=False, compare=False)

    @property
    def form(self) -> Form:
        """The first form, which in most programs is the only one.

        In a program of several forms it serves to read properties that all forms have in common.
        """
        return self.forms[0]

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """The modes, that is the collectives that a run chooses from, each with its forms."""
        found, first = [], 0
        served = self.served or ((Range(1, 0),),) * len(self.forms)
        for ranges, roots in zip(served, self.roots or (0,) * len(served), strict=True):
            count = (1 + max(each.form for each in ranges)) * (roots or 1)
            found.append(Mode(self.forms[first : first + count], first, ranges, roots))
            first += count
        return tuple(found)

    def name_of(self, mode: Mode) -> str:
        """Return the name of a mode as users write it: its collective and its faults.

        For example ``allreduce!0:+0`` for an all-reduce that does not use the link at port +0 of
        node 0.
        """
        schedule = mode.schedule
        own = (
            schedule.blocks.groups.group_topology
            if schedule.collective.without
            else schedule.topology
        )
        return schedule.collective.name + extra_faults(self.topology, own)

    def mode_number(self, mode: int | None) -> int:
        """Return the number of a mode after a check: `mode`, or 0 if it is None.

        Raises
        ------
        InputError
            If the program has no such mode.
        """
        number = 0 if mode is None else parse_non_negative_int("Mode", mode)
        if number >= len(self.modes):
            raise InputError(f"Mode must be from 0 to {len(self.modes) - 1}, not {mode}")
        return number

    def form_of(
        self, mode: int | None = None, length: int | None = None, root: int | None = None
    ) -> int:
        """Return the number of the form that a run executes.

        Parameters
        ----------
        mode : int, optional
            Mode number (default 0).
        length : int, optional
            Flits of a message; by default the largest number.
        root : int, optional
            Root of the run (default 0).

        Raises
        ------
        InputError
            If the program has no such mode, or does not take messages of this length.
        """
        return self.modes[self.mode_number(mode)].form_of(self.length_of(length), root)

    def arrange_messages(self, *, shared: bool) -> Self:
        """Return the program with memories for messages that all forms share, or do not share.

        Forms share them in hardware that writes a message for one form only, such as streams: a
        command names the form before its packets are loaded. Each memory is then as deep as the
        deepest form needs. Through a host port, a message is written before the run chooses the
        form. Then forms that keep messages at different addresses have memories of their own.

        Examples
        --------
        The messages of an all-gather and of an all-to-all have four memories in place of six.

        >>> import torusfabric as tf
        >>> plans = [tf.plan("4x4", name) for name in ("allgather", "alltoall")]
        >>> program = tf.compile(plans, max_flits=16)
        >>> together = program.arrange_messages(shared=True)
        >>> apart = together.arrange_messages(shared=False)
        >>> [sum(memory.own for memory in each.memories) for each in (program, together, apart)]
        [6, 4, 6]
        """
        layouts = {form.layout for form in self.forms}
        known = {memory.layout for memory in self.memories if memory.own}
        if len(layouts) < 2 or shared == (len(known) < len(layouts)):
            return self
        from .merge import merge  # here, because a program of one form does not need it

        found = merge(self.parts, share_messages=shared)
        return replace(self, forms=found.forms, memories=found.memories, depth=found.depth)

    def part(self, form: int) -> Self:
        """Return the program that has only the form with this number.

        Its memories are numbered from 0, without those that only other forms use.
        """
        return self.parts[form] if self.parts else self

    def alone(self, form: int) -> Self:
        """Return the program that has only this form, with unchanged cycles of a run.

        With several forms, a run begins with cycles in which the sequencer looks up its form. Runs
        of the result include these cycles; runs of `part`, the other program of this form, do not.
        """
        if not self.several:
            return self
        part = self.part(form)
        return replace(part, forms=(replace(part.form, chosen=self.forms[form].chosen),))

    @property
    def several(self) -> bool:
        """True if the program has several forms, of one mode or of several."""
        return len(self.forms) > 1

    @property
    def schedule(self) -> Schedule:
        """The schedule of the first form."""
        return self.form.schedule

    @property
    def loop(self) -> Loop:
        """The rows of the first form."""
        return self.form.loop

    @property
    def timing(self) -> Timing:
        """The cycles of all events in the longest runs of the first form."""
        return self.form.timing

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The operators that a run chooses from; all modes that combine words have the same."""
        return next((form.operators for form in self.forms if form.operators), ())

    @property
    def any_length(self) -> bool:
        """True if each run chooses the length of its messages.

        A message is then cut into chunks beat by beat, in turn: beat b goes to chunk ``b %
        chunks``. With two chunks and one flit per beat, chunk 0 has flits 0, 2, 4 .., and chunk 1
        has flits 1, 3, 5 .. With a fixed length, chunk 0 has the first half of the message, and
        chunk 1 the second.
        """
        return self.form.any_length

    @property
    def any_root(self) -> bool:
        """True if a run chooses its root, in any mode."""
        return any(mode.any_root for mode in self.modes)

    @property
    def root_groups(self) -> Groups:
        """The groups of nodes of the forms in which a run chooses its root.

        A run gives the root as the position of a node in its group, the same in all groups.
        """
        return next(form.groups for form in self.forms if form.any_root)

    @property
    def variant_at(self) -> IntArray:
        """The variant of the node at each offset from the root, shape (nodes,).

        A variant is a number for a set of nodes that act alike. The property is meant for forms in
        which a node acts according to its offset from the root (see `by_offset`).
        """
        return self.variant_of if self.offset_variant_of is None else self.offset_variant_of

    @property
    def by_offset(self) -> bool:
        """True if, in any form, the actions of a node depend on its offset from the root."""
        return any(form.by_offset for form in self.forms)

    @property
    def groups(self) -> Groups:
        """The groups of nodes in which the first form runs."""
        return self.form.groups

    @property
    def ports(self) -> int:
        """Number of ports of a node."""
        return self.topology.ports

    @property
    def block_flits(self) -> int:
        """Flits of a block of the first form, for messages of `flits` flits."""
        return block_flits(self.schedule, self.flits, self.form.beat)

    @cached_property
    def blocks(self) -> Blocks:
        """The blocks of the schedule of the first form, with their numbers."""
        return self.schedule.blocks

    @cached_property
    def layout(self) -> MemoryLayout:
        """The layout of node memories as the host sees them: parts, chunks and flits.

        The host, a computer that writes messages and reads results, numbers words in this order. A
        part is the data of one origin or destination, or one share of a sum.
        """
        return self.schedule.layout

    def within_blocks(self, number: int, memory: IntArray, flit: IntArray) -> IntArray:
        """Return the addresses of flits, relative to the first flit of their block.

        In most memories, flit f of a block has the relative address ``f * pitch``, with the pitch
        of the memory (`Loop.pitch`), mostly 1. In a memory of the node's own message, blocks of
        several chunks can alternate beat by beat. With R flits per beat, flit f then has the
        relative address ``(f - f % R) * pitch + f % R``.

        Parameters
        ----------
        number : int
            Number of the form.
        memory : ndarray of int
            Number of the memory in which each block lies.
        flit : ndarray of int
            Number of each flit within its block, from 0; broadcast against `memory`.
        """
        form = self.forms[number]
        pitch: IntArray = np.array([form.loop.pitch_of(k) for k in range(len(self.memories))])
        if form.beat == 1 or pitch.max() == 1:
            return flit * pitch[memory]
        own = np.array([each.own for each in self.memories])
        within = flit % np.where(own, form.beat, 1)[memory]
        return (flit - within) * pitch[memory] + within

    @property
    def send_words(self) -> int:
        """Number of words that the host writes for each node, as the message to send."""
        return self.layout.send_words(self.flits)

    @property
    def recv_words(self) -> int:
        """Number of words that the host reads at each node, as the result of a run."""
        return self.layout.recv_words(self.flits)

    def length_of(self, length: int | None = None) -> int:
        """Return the given length of a message in flits, after a check.

        The default is the largest number of flits of a message.

        Raises
        ------
        InputError
            If the program does not take messages of this length.
        """
        length = self.flits if length is None else parse_non_negative_int("Length", length)
        if length == self.flits:
            return length
        if not self.any_length:
            raise InputError(
                f"Length must be {self.flits} flits, not {length}; to choose it for each run, "
                "compile with max_flits (--max-flits)"
            )
        if not 1 <= length <= self.flits:
            raise InputError(f"Length must be from 1 to {self.flits} flits, not {length}")
        return length

    def locate(self, word: IntArray, length: int) -> tuple[IntArray, IntArray, IntArray]:
        """Return the part, chunk and flit of words that the host writes or reads at a node.

        The host numbers the words of a node from 0, part by part. A part is the data of one origin
        or destination, or one share of a sum: word 5 is flit 1 of part 1, if each part is a message
        of four flits in one chunk.

        Parameters
        ----------
        word : ndarray of int
            Numbers of words in this order.
        length : int
            Flits of a message.

        Returns
        -------
        part, chunk, flit : ndarray of int
            For each word, the numbers of its part, of its chunk within the part, and of its flit
            within the block.
        """
        layout, beat = self.layout, self.form.beat
        if not self.any_length:
            part, within = np.divmod(word, layout.part_flits(length))
            return part, *np.divmod(within, block_flits(self.schedule, length))
        message, within = np.divmod(word, length)
        turn, chunk = np.divmod(within // beat, self.schedule.chunks)
        share, chunk = np.divmod(chunk, layout.part_chunks)
        return message + share, chunk, turn * beat + within % beat

    def root_of(self, mode: int | None = None, root: int | None = None) -> int:
        """Return the root of a run, checked: a position within its group, 0 by default.

        Raises
        ------
        InputError
            If the program has no such mode or root.
        """
        size = self.modes[self.mode_number(mode)].groups.group_size
        position = parse_non_negative_int("Root", 0 if root is None else root)
        if position >= size:
            raise InputError(f"Root must be from 0 to {size - 1}, not {root}")
        return position

    def cycles(
        self, length: int | None = None, *, mode: int | None = None, root: int | None = None
    ) -> int:
        """Return the clock edges from the beginning of a run to `done`.

        A run begins with the edge that takes the start pulse. The exception is a start right after
        writes through the host port: the run then begins when these words will have reached the
        memories.

        Parameters
        ----------
        length : int, optional
            Flits of a message, for a program of any length; by default the largest number.
        mode : int, optional
            Number of the mode (default 0).
        root : int, optional
            Root of this run, for a program of any root (default 0).

        Examples
        --------
        A run of the broadcast (mode 1) with 7 flits takes 11 cycles, whatever its root is.

        >>> import torusfabric as tf
        >>> plans = [tf.plan("3x3", kind) for kind in ("allgather", "broadcast")]
        >>> program = tf.compile(plans, max_flits=8, root="any")
        >>> program.cycles(mode=1, length=7, root=3), program.cycles(7, mode=1)
        (11, 11)
        """
        length = self.length_of(length)
        form = self.forms[self.form_of(mode, length, self.root_of(mode, root))]
        return form.timing_of(form.block_of(length)).cycles

    def by_beats(self, beat: int) -> Self:
        """Return the program of the same schedules for another number of flits per beat.

        Beat b of a message belongs to chunk b mod C, where C is the number of chunks. Programs of a
        fixed length stay the same, because they cut a message into C successive parts, whatever the
        beat.

        Parameters
        ----------
        beat : int
            Flits per beat.

        Examples
        --------
        A message of one flit is padded to a block of one beat. With four flits per beat it
        therefore takes three cycles more.

        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan("4x4", "broadcast", chunks=4), max_flits=64)
        >>> program.by_beats(4).cycles(1) - program.cycles(1)
        3
        """
        if beat == self.form.beat or not self.any_length:
            return self
        if self.of_beats is None:
            raise InputError(
                "Beats of several flits need a program that tf.compile returns; compile the "
                "schedules again"
            )
        return replace(self.of_beats(beat=beat), of_beats=self.of_beats)

    def execute(
        self,
        words: np.ndarray,
        *,
        mode: int | None = None,
        length: int | None = None,
        root: int | None = None,
        operation: int | None = None,
        width: int = 64,
    ) -> np.ndarray:
        """Run the program on data, cycle by cycle, exactly as the hardware does.

        Parameters
        ----------
        words : ndarray, shape (nodes, send words)
            Message of each node. If a node has a different message for each destination, or a
            message is cut into shares, they follow one another. Negative integers are combined as
            their lowest `width` bits.
        mode : int, optional
            Number of the mode (default 0).
        length : int, optional
            Flits of a message, for a program of any length.
        root : int, optional
            Root of this run, for a program of any root (default 0).
        operation : int, optional
            Number of the operator of this run, for a program of several (default 0).
        width : int
            Bits of a word.

        Returns
        -------
        ndarray, shape (nodes, receive words)
            Words that the host reads at each node; 0 where the collective delivers nothing.

        Examples
        --------
        Every node sends its number, and receives the numbers of all.

        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="matching"))
        >>> program.execute(np.arange(9)[:, None])[4]
        array([0, 1, 2, 3, 4, 5, 6, 7, 8])
        """
        from .execute import Machine, Run  # here, because building hardware does not need it

        number, words = self.mode_number(mode), np.asarray(words)
        chosen = self.modes[number]
        run = Run(self.length_of(length), self.root_of(number, root), chosen.operator_of(operation))
        layout = self.part(chosen.form_of(run.length, run.root)).layout
        self._require_words(words, layout.send_words(run.length))
        width = parse_positive_int("Width", width)
        if run.operator:
            run.operator.check_width(width)
        sent = words
        if self.operators and words.dtype.kind == "i" and width <= 64:
            # Operators take unsigned words of exactly `width` bits.
            sent = words.astype(np.uint64) & np.uint64((1 << width) - 1)
        machine = Machine(self, number, sent, run, width)
        machine.run()
        return machine.received_words().astype(words.dtype, copy=False)

    def _require_words(self, words: np.ndarray, count: int) -> None:
        """Refuse `words` unless they are `count` integers for each node."""
        shape = self.topology.nodes, count
        if words.shape != shape or words.dtype.kind not in "iuO":
            raise InputError(
                f"Words must be integers of shape {shape}, a row for each node, not {words.dtype} "
                f"of shape {words.shape}"
            )

    def delivered(
        self,
        words: np.ndarray,
        *,
        mode: int | None = None,
        length: int | None = None,
        root: int | None = None,
        operation: int | None = None,
        width: int = 64,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the words that a run has to deliver, by the definition of the collective.

        For an operator that is not associative the definition leaves the order of operands open.
        The words are then those of a simulated run, which combines operands in the order of the
        program.

        Parameters
        ----------
        words, mode, length, root, operation, width
            Parameters of `execute`.

        Returns
        -------
        words : ndarray, shape (nodes, receive words)
            Expected words of each node.
        receives : ndarray of bool, shape (nodes, receive words)
            True for each word that is delivered; the other words have no meaning.

        Examples
        --------
        Three nodes send three words each: 0 1 2, 3 4 5 and 6 7 8. Node 0 has to receive their sums.

        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan("3", "allreduce"))
        >>> program.delivered(np.arange(9, dtype=np.uint64).reshape(3, 3))[0][0]
        array([ 9, 12, 15], dtype=uint64)
        """
        operator = self.modes[self.mode_number(mode)].operator_of(operation)
        layout, words = self.part(self.form_of(mode, length)).layout, np.asarray(words)
        self._require_words(words, layout.send_words(self.length_of(length)))
        width = parse_positive_int("Width", width)
        if operator is not None:
            operator.check_width(width)
        if root is not None:
            root = self.root_of(mode, root)
        expected, receives = expected_words(
            layout, words, operator=operator, width=width, root=root
        )
        if operator is not None and not operator.associative:
            expected = self.execute(
                words, mode=mode, length=length, root=root, operation=operation, width=width
            )
        return expected, receives

    def operand_orders(
        self, *, mode: int | None = None, length: int | None = None, root: int | None = None
    ) -> OperandOrders:
        """Return the order in which a run combines the words of nodes, and the error bound.

        With an operator that is not associative, such as a floating-point sum, the order decides
        the result. It is the same in every run of the same length and root.

        Parameters
        ----------
        mode, length, root
            Parameters of `execute`.

        Returns
        -------
        OperandOrders
            The different trees of additions, and the tree of each received word.

        Raises
        ------
        InputError
            If the mode is no reduction.

        Examples
        --------
        Three nodes in a ring, and a third of the sums for each: every third has a tree of its own.

        >>> import torusfabric as tf
        >>> plan = tf.plan("3", "allreduce", algorithm="matching", operators="add:fp32")
        >>> orders = tf.compile(plan, operators="add:fp32").operand_orders()
        >>> orders.trees, orders.depth
        (('(0 (1 2))', '(1 (0 2))', '(2 (0 1))'), 2)
        >>> orders.error_bound < 1.2e-7
        True
        """
        from .operand_orders import find_operand_orders  # here, because few programs need it

        return find_operand_orders(self, mode=mode, length=length, root=root)

    @cached_property
    def digest(self) -> str:
        """The SHA-256, in hexadecimal, of all facts of the program that determine the hardware."""
        digest = hashlib.sha256()
        _update_digest(
            digest, (self.topology.to_entry(), self.flits, self.any_length, self.barrier)
        )
        _update_digest(digest, (self.memories, self.depth, self.variant_of, self.offset_variant_of))
        _update_digest(digest, (self.served, self.roots))
        for form in self.forms:
            facts = (form.any_root, form.by_offset, form.beat, form.loop)
            _update_digest(digest, (*facts, tuple(map(str, form.operators))))
            _update_digest(digest, form.schedule.collective.to_json())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        """Return True if `other` is a program that gives the same hardware."""
        if not isinstance(other, Program):
            return NotImplemented
        return self is other or self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        modes = ", ".join(f"{self.name_of(mode)} by {mode.algorithm_names}" for mode in self.modes)
        cycles = " or ".join(str(self.cycles(mode=k)) for k in range(len(self.modes)))
        return (
            f"<Program {self.topology} {modes}: {self.flits} flits, {cycles} cycles, "
            f"{self.digest[:12]}>"
        )


def require_width(width: object, operators: Iterable[Operator]) -> int:
    """Return the width of a flit in bits, checked.

    Parameters
    ----------
    operators : iterable of Operator
        Operators of the fabric, which may restrict the width.

    Raises
    ------
    InputError
        If hardware or an operator does not support this width.
    """
    bits = parse_non_negative_int("Width", width)
    if not 1 <= bits <= MAX_WIDTH:
        raise InputError(f"Width must be from 1 to {MAX_WIDTH} bits, not {width}")
    for operator in operators:
        operator.check_width(bits)
    return bits


def _update_digest(digest: Any, value: Any) -> None:
    """Add `value` to a digest, a hash object of `hashlib`.

    A tuple or dataclass is added field by field, an array of integers as its shape and bytes, and
    any other value as its `repr`.
    """
    if isinstance(value, np.ndarray):
        digest.update(f"{value.shape}".encode())
        digest.update(np.ascontiguousarray(value, dtype="<i8").data)
    elif isinstance(value, tuple):
        for item in value:
            _update_digest(digest, item)
    elif is_dataclass(value):
        for item in fields(value):
            _update_digest(digest, getattr(value, item.name))
    else:
        digest.update(repr(value).encode())
