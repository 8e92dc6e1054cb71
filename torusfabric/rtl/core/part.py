"""The base class of the modules of a node, and the multiplexers in them.

A module of a node is given, by name:

====================  ==========================================================================
``columns``           select bits that the sequencer sends, a cycle before they count
``address_K``         address K of the sequencer, a cycle before it counts
``read_K``            the same, by which a shared memory port reads while no run is under way
``word_K``            word counter K, likewise
``valid_K``           strobe K, likewise
``table_K``           the row that table K of the node shows
``rx``                words of in-ports
``inject``            other words of the node
====================  ==========================================================================

What the sequencer sends has passed the register of a group of nodes; `NodePart.here` is the second
register, in the node. Select bits are held by the multiplexers that they control.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib.wiring import In, Member

from ..modules import Leaf, apart, delayed
from ..multiplexer import branch_bits, branch_luts, lut_count, multiplexed, select_bits
from .places import Bit, BitPlacer, Place

if TYPE_CHECKING:
    from ..operator_unit import OperatorUnit

__all__ = [
    "NEUTRAL_WORD",
    "Choice",
    "LocalWord",
    "NodeInputs",
    "NodePart",
    "NodeSettings",
    "is_branched",
    "operator_code_input",
    "plan_choice",
]

#: Words from which on a multiplexer passes 0 where all its select bits are 0.
LEAST_TO_IDLE = 4


@dataclass(frozen=True)
class NodeSettings:
    """Properties that all nodes of a core share.

    Parameters
    ----------
    width : int
        Bits of a flit.
    ports : int
        Ports of a node.
    unit : OperatorUnit or None
        Combines words, where anything does.
    """

    width: int
    ports: int
    unit: OperatorUnit | None = None

    @property
    def zero_is_neutral(self) -> bool:
        """True if the word 0 changes nothing, whichever operator a run chooses."""
        unit = self.unit
        if unit is None:
            return True
        constant = unit.identity_bits(self.width) == 0
        return constant and unit.operators[0].identity(self.width) == 0


@dataclass(frozen=True)
class LocalWord:
    """A word in a module of a node.

    Parameters
    ----------
    position : int
        Its place among the words that the module is given; -1 for the word that changes nothing.
    late : bool
        True for the word of the cycle before.
    injected : bool
        True for the word of an injection port of a store, which the store has itself.
    """

    position: int
    late: bool = False
    injected: bool = False


#: The word that changes nothing.
NEUTRAL_WORD = LocalWord(-1)


@dataclass(frozen=True)
class Choice:
    """One of several words: the inputs of a multiplexer, and its select bits.

    Parameters
    ----------
    words : tuple of LocalWord
        Inputs of the multiplexer.
    bits : tuple of Bit
        Select bits.
    branched : bool
        True if the multiplexer has branches, see `torusfabric.rtl.multiplexer`.
    idles : bool
        True if 0 passes as one more word, where all select bits are 0.
    """

    words: tuple[LocalWord, ...] = ()
    bits: tuple[Bit, ...] = ()
    branched: bool = True
    idles: bool = False

    @property
    def inputs(self) -> int:
        """Number of words that may pass."""
        return len(self.words) + self.idles

    def code(self, number: int) -> list[int]:
        """Return the select bits that make an input pass, or 0 behind the last of them."""
        if number == len(self.words):
            return [0] * len(self.bits)
        return (branch_bits if self.branched else select_bits)(len(self.words), number)


def plan_choice(
    words: Sequence[LocalWord], *, idles: bool, branched: bool = True
) -> tuple[tuple[LocalWord, ...], list[list[int]]]:
    """Return the inputs of a multiplexer, and the select bits that make each word pass.

    Parameters
    ----------
    words : sequence of LocalWord
        The word that changes nothing comes last.
    idles : bool
        True if the word that changes nothing is 0: beside enough others it is no input.

    Examples
    --------
    >>> inputs, codes = plan_choice([LocalWord(0), LocalWord(1)], idles=False)
    >>> len(inputs), codes
    (2, [[0], [1]])
    """
    form = branch_bits if branched else select_bits
    idle = idles and NEUTRAL_WORD in words and len(words) > LEAST_TO_IDLE
    inputs = tuple(words[: len(words) - idle])
    codes = [form(len(inputs), index) for index in range(len(inputs))]
    return inputs, codes + [[0] * len(form(len(inputs), 0))] * idle


def is_branched(counts: Sequence[int], others: int) -> list[bool]:
    """Return True for each multiplexer of a crossbar that has branches.

    Branches make it fast. They are left out where a full crossbar of plain cascades, over the
    in-ports and as many words of the node as there are out-ports, would take fewer look-up tables.

    Parameters
    ----------
    counts : sequence of int
        Inputs of each multiplexer.
    others : int
        Different words of the node itself among them.
    """
    ports = len(counts)
    full = ports * lut_count(ports + min(others, ports))
    dear = sum(map(branch_luts, counts)) > full
    return [not dear or branch_luts(count) <= lut_count(count) for count in counts]


@dataclass(frozen=True)
class NodeInputs:
    """The inputs of a module of a node, apart from its words.

    Parameters
    ----------
    columns : int
        Select bits of the sequencer.
    tables : tuple of int
        Bits of each table.
    widths : tuple of (str, int)
        Bits of each other signal of the sequencer, by its name in the module.
    addresses : tuple of str
        The name of each address.
    """

    columns: int = 0
    tables: tuple[int, ...] = ()
    widths: tuple[tuple[str, int], ...] = ()
    addresses: tuple[str, ...] = ()

    @classmethod
    def from_placer(cls, placer: BitPlacer) -> NodeInputs:
        """Return the inputs that places of a placer need."""
        columns = placer.columns
        addresses = tuple(
            columns.address_name(numbers.tolist(), slot)
            for slot, numbers in enumerate(placer.address_slots)
        )
        widths = [
            (name, columns.address_bits[numbers[0]])
            for name, numbers in zip(addresses, placer.address_slots, strict=True)
        ]
        for slot, numbers in enumerate(placer.word_slots):
            # Counters lie side by side, each in as many bits as the widest has.
            alike, bits = (numbers == numbers[0]).all(), columns.word_bits
            widths.append((f"word_{slot}", bits[numbers[0]] if alike else max(bits)))
        widths += [(f"valid_{slot}", 1) for slot in range(len(placer.valid_slots))]
        tables = tuple(len(table.columns) for table in placer.tables)
        return cls(len(placer.bit_slots), tables, tuple(widths), addresses)

    @property
    def members(self) -> dict[str, Member]:
        """The members of a module with these inputs."""
        found = {"columns": In(self.columns)}
        found |= {name: In(bits) for name, bits in self.widths}
        return found | {f"table_{k}": In(bits) for k, bits in enumerate(self.tables)}


class NodePart(Leaf):
    """A module of a node.

    Parameters
    ----------
    words : dict of str to int
        Number of words that come by each of some ports.
    """

    def __init__(
        self,
        inputs: NodeInputs,
        settings: NodeSettings,
        words: Mapping[str, int],
        others: Mapping[str, Member],
    ) -> None:
        self.inputs, self.settings, self._given = inputs, settings, words
        self._held: dict[str, Signal] = {}
        self._late: dict[int, Signal] = {}
        self._is_built = False
        ports = {port: In(count * settings.width) for port, count in words.items()}
        super().__init__(inputs.members | ports | dict(others))

    @cached_property
    def m(self) -> Module:
        """The module that is built."""
        return Module()

    def elaborate(self, platform: object) -> Module:
        """Return the module; it is built once, however often it is asked for."""
        if not self._is_built:
            self.build()
            self._is_built = True
        return self.m

    def build(self) -> None:
        """Build the module."""
        raise NotImplementedError

    def here(self, name: str) -> Signal:
        """Return the register of this node for a signal of the sequencer."""
        if name not in self._held:
            value = self.value(name)
            held = apart(self.m, value, name=f"{name}_here")
            assert isinstance(held, Signal)
            self._held[name] = held
        return self._held[name]

    def early_bit(self, bit: Bit) -> Value:
        """Return a bit a cycle before it counts, for a register to hold."""
        if bit.place is Place.CONSTANT:
            return Const(bit.number, 1)
        if bit.place is Place.TABLE:
            shown = self.value(f"table_{bit.table}")[bit.number]
            return delayed(self.m, shown, bit.held) if bit.held else shown
        return self.value("columns")[bit.number]

    def bit(self, bit: Bit) -> Value:
        """Return a bit in the cycle in which it counts."""
        if bit.place is Place.COLUMN:
            return self.here("columns")[bit.number]
        return self.early_bit(bit)

    def number(self, bits: Sequence[Bit]) -> Value:
        """Return a number in the cycle in which it counts."""
        return Cat(*map(self.bit, bits))

    def run_operator(self) -> Value:
        """Return the control bits of the operator of the run."""
        known = "operator_code" in self.signature.members
        return self.here("operator_code") if known else Const(0, 0)

    def neutral(self) -> Value:
        """Return the word that changes nothing."""
        unit, width = self.settings.unit, self.settings.width
        return unit.identity(self.run_operator(), width) if unit else Const(0, width)

    def word(self, word: LocalWord) -> Value:
        """Return a word, or the word of the cycle before."""
        if word == NEUTRAL_WORD:
            return self.neutral()
        now = self.given_words[word.position]
        if not word.late:
            return now
        if word.position not in self._late:
            name = f"word_{word.position}_d1"
            self._late[word.position] = Signal(self.settings.width, reset_less=True, name=name)
            self.m.d.sync += self._late[word.position].eq(now)
        return self._late[word.position]

    def word_count(self, port: str) -> int:
        """Return the number of words that come by a port."""
        return self._given.get(port, 0)

    @property
    def given_words(self) -> list[Value]:
        """The words that the module is given, port by port."""
        return [
            word
            for port, count in self._given.items()
            if count
            for word in self.words(port, self.settings.width)
        ]

    def chosen(self, choice: Choice, name: str) -> Value:
        """Return the word that a choice passes; 0 if it has no inputs."""
        return self.select(choice, [self.word(word) for word in choice.words], name)

    def select(self, choice: Choice, inputs: Sequence[Value], name: str) -> Value:
        """Return the input that the select bits of a choice pass."""
        code = Cat(*map(self.early_bit, choice.bits))
        return self.select_by(code, inputs, name, branched=choice.branched)

    def select_by(
        self,
        code: Value,
        inputs: Sequence[Value],
        name: str,
        *,
        branched: bool,
        small: bool = False,
    ) -> Value:
        """Return the input that select bits pass, given these a cycle before they count."""
        if not self.alone and len(code):
            code = apart(self.m, code, name=f"{name}_select")
        return multiplexed(
            self.m,
            inputs,
            code,
            max(map(len, inputs), default=self.settings.width),
            name=name if self.alone else None,
            branched=branched,
            small=small,
        )


def operator_code_input(
    settings: NodeSettings, *, neutral: bool, combines: bool = False
) -> dict[str, Member]:
    """Return the member for the control bits of the operator, where a module needs them.

    Parameters
    ----------
    neutral : bool
        True if the module uses the word that changes nothing.
    combines : bool
        True if the module combines words.
    """
    unit = settings.unit
    if unit is None:
        return {}
    bits = unit.identity_bits(settings.width) * neutral
    return {"operator_code": In(max(bits, unit.bits * combines))}
