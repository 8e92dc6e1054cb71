"""`Program`: the work of all routers and endpoints of a fabric as data, and its execution."""

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
from ..toolchain.values import natural, positive
from ..topology import IntArray, faults_within
from .fields import Memory
from .mode import Form, Mode, Range, block_flits

if TYPE_CHECKING:
    from ..collective import Blocks, Layout, Operator
    from ..schedule import Schedule
    from ..topology import Groups, Topology
    from .fields import Loop
    from .timing import Timing

__all__ = ["Program", "require_width"]

#: The widest flit.
MAX_WIDTH = 1024


@public_class
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Program:
    """The actions of all routers and endpoints, for messages of one length or of any up to it.

    Parameters
    ----------
    flits : int
        Flits of a message, or the most of them.
    forms : tuple of Form
        One of them is carried out in each run, chosen at its start if there are several.
    memories : tuple of Memory
        The memories of a node.
    depth : ndarray of int, shape (variants, memories)
        Words of each memory.
    variant_of : ndarray of int, shape (nodes,)
        The variant of each node; of a single form by offset, of the node at each offset from the
        root.
    offset_variant_of : ndarray of int, shape (nodes,), or None
        Where there are several forms, some of them by offset: the variant of the node at each
        offset from the root in these forms.
    barrier : bool
        Whether there is a mode more, after all others, without data: nodes wait for one another.
    parts : tuple of Program
        Where there are several forms, what each would be alone: its memories have other numbers.
    served : tuple of (tuple of Range)
        Of each mode, for which lengths which of its forms serves; forms of all modes follow one
        another. By default each form is a mode.
    roots : tuple of int
        Of each mode, how many roots have forms of their own, see `Mode`; by default none.
    writable : bool
        True if hardware finds the forms in tables that can be written. Their parts say what they
        do.
    of_beats : callable, optional
        Compiles the same with another number of flits that go to a chunk together, its `beat`.

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
        """The first form."""
        return self.forms[0]

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """The collectives that a run chooses from, each in one or several forms."""
        found, first = [], 0
        served = self.served or ((Range(1, 0),),) * len(self.forms)
        for ranges, roots in zip(served, self.roots or (0,) * len(served), strict=True):
            count = (1 + max(each.form for each in ranges)) * (roots or 1)
            found.append(Mode(self.forms[first : first + count], first, ranges, roots))
            first += count
        return tuple(found)

    def name_of(self, mode: Mode) -> str:
        """A mode as users write it: its collective, and the links and nodes it does without."""
        schedule = mode.schedule
        own = schedule.blocks.groups.torus if schedule.collective.without else schedule.topology
        return schedule.collective.name + faults_within(self.topology, own)

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

    def form_of(
        self, mode: int | None = None, length: int | None = None, root: int | None = None
    ) -> int:
        """The number of the form in which a run is carried out.

        Raises
        ------
        InputError
            If there is no such mode, or the program is not for messages of that length.
        """
        return self.modes[self.mode_number(mode)].form_of(self.length_of(length), root)

    def part(self, form: int) -> Self:
        """Return the program of one form alone."""
        return self.parts[form] if self.parts else self

    def alone(self, form: int) -> Self:
        """Return the program of one form, with its timing among the other forms."""
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
        """The schedule that the only form was compiled from."""
        return self.form.schedule

    @property
    def loop(self) -> Loop:
        """The rows of the only form."""
        return self.form.loop

    @property
    def timing(self) -> Timing:
        """When what happens in the only form."""
        return self.form.timing

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The operators among which a run chooses, the same in all modes that combine words."""
        return next((form.operators for form in self.forms if form.operators), ())

    @property
    def any_length(self) -> bool:
        """True if the start of a run chooses the length of messages.

        With R flits a beat, beat b of a message then lies in chunk ``b % chunks``, from flit
        ``b // chunks * R`` on; else chunks follow one another.
        """
        return self.form.any_length

    @property
    def any_root(self) -> bool:
        """True if the start of a run chooses the root, in any mode."""
        return any(mode.any_root for mode in self.modes)

    @property
    def root_groups(self) -> Groups:
        """The groups of nodes in which roots are positions, where they are chosen."""
        return next(form.groups for form in self.forms if form.any_root)

    @property
    def variant_at(self) -> IntArray:
        """The variant of the node at each offset from the root, where that matters."""
        return self.variant_of if self.offset_variant_of is None else self.offset_variant_of

    @property
    def by_offset(self) -> bool:
        """True if the actions of a node depend on its offset from the root, in any form."""
        return any(form.by_offset for form in self.forms)

    @property
    def groups(self) -> Groups:
        """The groups of nodes of the only form."""
        return self.form.groups

    @property
    def ports(self) -> int:
        """Number of ports of a node."""
        return self.topology.ports

    @property
    def block_flits(self) -> int:
        """Flits of a block."""
        return block_flits(self.schedule, self.flits, self.form.beat)

    @cached_property
    def blocks(self) -> Blocks:
        """The numbered blocks."""
        return self.schedule.blocks

    @cached_property
    def layout(self) -> Layout:
        """The memory layout of a node as the host addresses it."""
        return self.schedule.layout

    def within_blocks(self, number: int, memory: IntArray, flit: IntArray) -> IntArray:
        """Return how far flits lie from the first ones of their blocks in memories, elementwise.

        Where blocks of a message take turns in what a node sends, they do so by beats.

        Parameters
        ----------
        number : int
            The number of the form.
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
        layout, beat = self.layout, self.form.beat
        if not self.any_length:
            part, within = np.divmod(word, layout.part_flits(length))
            return part, *np.divmod(within, block_flits(self.schedule, length))
        message, within = np.divmod(word, length)
        turn, chunk = np.divmod(within // beat, self.schedule.chunks)
        share, chunk = np.divmod(chunk, layout.part_chunks)
        return message + share, chunk, turn * beat + within % beat

    def root_of(self, mode: int | None = None, root: int | None = None) -> int:
        """The root of a run: a position within its group, 0 if nothing is said.

        Raises
        ------
        InputError
            If there is no such mode, or no such root.
        """
        size = self.modes[self.mode_number(mode)].groups.size
        position = natural("Root", 0 if root is None else root)
        if position >= size:
            raise InputError(f"Root must be from 0 to {size - 1}, not {root}")
        return position

    def cycles(
        self, length: int | None = None, *, mode: int | None = None, root: int | None = None
    ) -> int:
        """Clock edges from the begin of a run to done.

        A run begins with the edge that takes the start pulse. Only where words that the host port
        has just taken are on their way to memories it begins later, when they will be there.

        Parameters
        ----------
        length : int, optional
            Flits of a message, for a program of any length; by default as many as there may be.
        mode : int, optional
            Which of several collectives (default 0).
        root : int, optional
            The root of this run, for a program of any root (default 0).

        Examples
        --------
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
        """The same where messages go to their chunks by so many flits at a time.

        Only where the length is chosen that makes a difference.

        Examples
        --------
        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan("4x4", "broadcast", chunks=4), max_flits=64)
        >>> program.by_beats(4).cycles(1) - program.cycles(1)
        3
        """
        if beat == self.form.beat or not self.any_length:
            return self
        if self.of_beats is None:
            raise InputError("Program must be as tf.compile returns it for beats of several flits")
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
        """Carry out the program on data, cycle by cycle, as the hardware does.

        Parameters
        ----------
        words : ndarray, shape (nodes, send words)
            What each node sends, as the host writes it: parts of `length` flits. Sums of negative
            integers are those of their lowest `width` bits.
        mode : int, optional
            Which of several collectives (default 0).
        length : int, optional
            Flits of a message, for a program of any length.
        root : int, optional
            The root of this run, for a program of any root (default 0).
        operation : int, optional
            The number of the operator of this run, for a program of several (default 0).
        width : int
            Bits of a word.

        Returns
        -------
        ndarray, shape (nodes, receive words)
            What the host reads at each node; 0 where nothing is delivered.

        Examples
        --------
        Every node sends its number, and receives the numbers of all.

        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="matching"))
        >>> program.execute(np.arange(9)[:, None])[4]
        array([0, 1, 2, 3, 4, 5, 6, 7, 8])
        """
        from .execute import Machine, Run  # which hardware does without

        number, words = self.mode_number(mode), np.asarray(words)
        chosen = self.modes[number]
        run = Run(self.length_of(length), self.root_of(number, root), chosen.operator_of(operation))
        layout = self.part(chosen.form_of(run.length, run.root)).layout
        self._require_words(words, layout.send_words(run.length))
        width = positive("Width", width)
        if run.operator:
            run.operator.check_width(width)
        sent = words
        if self.operators and words.dtype.kind == "i" and width <= 64:
            # As operators take them: without a sign, and no wider than they may be.
            sent = words.astype(np.uint64) & np.uint64((1 << width) - 1)
        machine = Machine(self, number, sent, run, width)
        machine.run()
        return machine.received().astype(words.dtype, copy=False)

    def _require_words(self, words: np.ndarray, count: int) -> None:
        """Refuse what nodes send if it is not an integer for each word of each node."""
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
        """The words that a run is to bring every node, by the definition of the collective.

        Where an operator is not associative, the definition leaves the order open: then it is that
        of the program.

        Parameters
        ----------
        words, mode, length, root, operation, width
            As of `execute`.

        Returns
        -------
        words : ndarray, shape (nodes, receive words)
        receives : ndarray of bool, shape (nodes, receive words)
            What is delivered; other words have no meaning.

        Examples
        --------
        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan("3", "allreduce"))
        >>> program.delivered(np.arange(9, dtype=np.uint64).reshape(3, 3))[0][0]
        array([ 9, 12, 15], dtype=uint64)
        """
        operator = self.modes[self.mode_number(mode)].operator_of(operation)
        layout, words = self.part(self.form_of(mode, length)).layout, np.asarray(words)
        self._require_words(words, layout.send_words(self.length_of(length)))
        width = positive("Width", width)
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

    @cached_property
    def digest(self) -> str:
        """A name for the content: hexadecimal SHA-256 over everything that hardware is made of."""
        digest = hashlib.sha256()
        _update(digest, (self.topology.to_entry(), self.flits, self.any_length, self.barrier))
        _update(digest, (self.memories, self.depth, self.variant_of, self.offset_variant_of))
        _update(digest, (self.served, self.roots))
        for form in self.forms:
            facts = (form.any_root, form.by_offset, form.beat, form.loop)
            _update(digest, (*facts, tuple(map(str, form.operators))))
            _update(digest, form.schedule.collective.to_json())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        """True if the same hardware carries out the same."""
        if not isinstance(other, Program):
            return NotImplemented
        return self is other or self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        modes = ", ".join(f"{self.name_of(mode)} by {mode.algorithms}" for mode in self.modes)
        cycles = " or ".join(str(self.cycles(mode=k)) for k in range(len(self.modes)))
        return (
            f"<Program {self.topology} {modes}: {self.flits} flits, {cycles} cycles, "
            f"{self.digest[:12]}>"
        )


def require_width(width: object, operators: Iterable[Operator]) -> int:
    """The bits of a word of a fabric with some operators, as a number.

    Raises
    ------
    InputError
        If hardware is not made for so many, or an operator does not take them.
    """
    bits = natural("Width", width)
    if not 1 <= bits <= MAX_WIDTH:
        raise InputError(f"Width must be from 1 to {MAX_WIDTH} bits, not {width}")
    for operator in operators:
        operator.check_width(bits)
    return bits


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
