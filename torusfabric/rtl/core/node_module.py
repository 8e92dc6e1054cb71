"""The base class of the modules of a node, `NodeModule`, and their `NodeMultiplexer`.

A module of a node has these inputs:

====================  ==========================================================================
``columns``           bits that the sequencer sends, such as select bits
``address_K``         address K of the sequencer
``read_K``            address K, if a shared memory port reads through it between runs
``word_K``            word counter K of the sequencer
``valid_K``           strobe K of the sequencer
``table_K``           the current row of table K of the node
``rx``                words of in-ports, side by side
``inject``            other words of the node, side by side
====================  ==========================================================================

Signals of the sequencer come from the register of a group of nodes, one cycle before they act.
`NodeModule.node_register` adds the second register, in the node. Select bits are the exception: the
multiplexer that they control registers them.

The *identity word* does not change the result of an operator, such as 0 in a sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib.wiring import In, Member

from ..modules import Leaf, delay_value, unmerged_register
from ..multiplexer import (
    add_multiplexer,
    branched_lut_count,
    branched_select_bits,
    lut_count,
    select_bits,
)
from .places import Bit, BitPlace, BitPlacer

if TYPE_CHECKING:
    from ..operator_unit import OperatorUnit

__all__ = ["IDENTITY_WORD", "NodeMultiplexer", "LocalWord", "NodeInputs", "NodeModule",
           "NodeSettings", "needs_branches", "operator_code_input", "plan_multiplexer"]  # fmt: skip

#: A multiplexer of more words than this, the identity word included, has no input for an identity
#: word of 0: it passes 0 when all select bits are 0.
MOST_WITH_IDENTITY_INPUT = 4


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
        The unit that combines words, or None if the program has no operators.
    """

    width: int
    ports: int
    unit: OperatorUnit | None = None

    @property
    def identity_is_zero(self) -> bool:
        """True if 0 is the identity word of all operators: it leaves their results unchanged."""
        unit = self.unit
        if unit is None:
            return True
        constant = unit.identity_bits(self.width) == 0
        return constant and unit.operators[0].identity(self.width) == 0


@dataclass(frozen=True)
class LocalWord:
    """A word that a multiplexer in a module of a node can pass, by its position at the inputs.

    Parameters
    ----------
    position : int
        The position among the words at the inputs of the module; -1 for the identity word, which
        leaves the result of an operator unchanged.
    late : bool
        True for the word delayed by one cycle.
    injected : bool
        True in the module of memories, for a word that it sends to the router. `position` then is
        the number of the injection port of this word.
    """

    position: int
    late: bool = False
    injected: bool = False


#: The identity word.
IDENTITY_WORD = LocalWord(-1)


@dataclass(frozen=True)
class NodeMultiplexer:
    """A multiplexer in a module of a node: its inputs, and the sources of its select bits.

    Parameters
    ----------
    words : tuple of LocalWord
        The words at the inputs of the multiplexer.
    bits : tuple of Bit
        For each select bit, its source: a constant, the sequencer or a table.
    branched : bool
        True if the multiplexer has branches, see `torusfabric.rtl.multiplexer`.
    idles : bool
        True if the multiplexer passes 0 when all select bits are 0. The word 0 then needs no input;
        it is the identity word, which leaves the result of an operator unchanged.
    """

    words: tuple[LocalWord, ...] = ()
    bits: tuple[Bit, ...] = ()
    branched: bool = True
    idles: bool = False

    @property
    def n_inputs(self) -> int:
        """Number of words that the multiplexer can pass, 0 included if it idles."""
        return len(self.words) + self.idles

    def bits_for_input(self, number: int) -> list[int]:
        """Return the select bits for input `number`: ``[1, 0]``, least significant bit first.

        Inputs have the numbers 0 to k - 1. If the multiplexer idles, `number` k stands for the word
        0, which zeros select.
        """
        if number == len(self.words):
            return [0] * len(self.bits)
        return (branched_select_bits if self.branched else select_bits)(len(self.words), number)


def plan_multiplexer(
    words: Sequence[LocalWord], *, idles: bool, branched: bool = True
) -> tuple[tuple[LocalWord, ...], list[list[int]]]:
    """Return the inputs of a multiplexer, and the select bits for each word.

    Parameters
    ----------
    words : sequence of LocalWord
        The words to pass. The identity word, which leaves the result of an operator unchanged,
        comes last.
    idles : bool
        True if the identity word is 0. Beside `MOST_WITH_IDENTITY_INPUT` or more other words, it
        then needs no input: the multiplexer passes 0 when all select bits are 0.
    branched : bool
        True for a multiplexer with branches.

    Examples
    --------
    >>> inputs, codes = plan_multiplexer([LocalWord(0), LocalWord(1)], idles=False)
    >>> len(inputs), codes
    (2, [[0], [1]])
    """
    form = branched_select_bits if branched else select_bits
    idle = idles and IDENTITY_WORD in words and len(words) > MOST_WITH_IDENTITY_INPUT
    inputs = tuple(words[: len(words) - idle])
    codes = [form(len(inputs), index) for index in range(len(inputs))]
    return inputs, codes + [[0] * len(form(len(inputs), 0))] * idle


def needs_branches(counts: Sequence[int], others: int) -> list[bool]:
    """Return, for each multiplexer of a crossbar, True if it should have branches.

    A multiplexer with branches combines its inputs in parallel, and a plain cascade one after
    another. Branches are faster, but may take more LUTs. All multiplexers have branches, unless
    these would take more LUTs in total than a full crossbar of plain cascades. In that case, only
    the multiplexers that branches do not enlarge have them. A *full crossbar* passes, to each of P
    out-ports, the words of any in-port and up to P other words.

    Parameters
    ----------
    counts : sequence of int
        Number of inputs of each multiplexer, one for each out-port.
    others : int
        Number of different words, at all inputs together, that do not come from in-ports.
    """
    ports = len(counts)
    full = ports * lut_count(ports + min(others, ports))
    dear = sum(map(branched_lut_count, counts)) > full
    return [not dear or branched_lut_count(count) <= lut_count(count) for count in counts]


@dataclass(frozen=True)
class NodeInputs:
    """The control inputs of a module of a node: their number, names and widths.

    Parameters
    ----------
    columns : int
        Number of single bits from the sequencer.
    tables : tuple of int
        Bits in a row of each table.
    widths : tuple of (str, int)
        The name in the module, and the width, of each other signal of the sequencer.
    addresses : tuple of str
        The name of each address in the module.
    """

    columns: int = 0
    tables: tuple[int, ...] = ()
    widths: tuple[tuple[str, int], ...] = ()
    addresses: tuple[str, ...] = ()

    @classmethod
    def from_placer(cls, placer: BitPlacer) -> NodeInputs:
        """Return the inputs of a module for its control values, such as select bits.

        `placer` has the source of each control value: the sequencer or a table.
        """
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
            # The counters lie side by side in one net, at a stride of the widest counter. Nodes
            # that connect the slot to different counters take the whole stride.
            alike, bits = (numbers == numbers[0]).all(), columns.word_bits
            widths.append((f"word_{slot}", bits[numbers[0]] if alike else max(bits)))
        widths += [(f"valid_{slot}", 1) for slot in range(len(placer.valid_slots))]
        tables = tuple(len(table.columns) for table in placer.tables)
        return cls(len(placer.bit_slots), tables, tuple(widths), addresses)

    @property
    def signature_members(self) -> dict[str, Member]:
        """The Amaranth members for these inputs, by the names of the inputs."""
        found = {"columns": In(self.columns)}
        found |= {name: In(bits) for name, bits in self.widths}
        return found | {f"table_{k}": In(bits) for k, bits in enumerate(self.tables)}


class NodeModule(Leaf):
    """The base class of the modules of a node: router, operators, and memories.

    Subclasses override `add_logic`. They read control bits by `bit_value` and `number_value`, and
    make multiplexers by `choose_word` and `select_word`.

    Parameters
    ----------
    inputs : NodeInputs
        The control inputs.
    settings : NodeSettings
        The properties that all nodes share.
    words : dict of str to int
        The number of words at each input of words, such as ``{"rx": 4, "inject": 1}``.
    others : dict of str to Member
        Further members of the signature.
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
        super().__init__(inputs.signature_members | ports | dict(others))

    @cached_property
    def m(self) -> Module:
        """The Amaranth module that `add_logic` fills."""
        return Module()

    def elaborate(self, platform: object) -> Module:
        """Return the module. The first call builds it."""
        if not self._is_built:
            self.add_logic()
            self._is_built = True
        return self.m

    def add_logic(self) -> None:
        """Build the logic of the module in `m`; called once, by the first `elaborate`."""
        raise NotImplementedError

    def node_register(self, name: str) -> Signal:
        """Return the register, in this node, of a control input.

        A signal of the sequencer comes one cycle before it acts, from a register that serves a
        group of nodes. This second register delays it to the right cycle. Repeated calls return the
        same register.

        Parameters
        ----------
        name : str
            The name of the input.
        """
        if name not in self._held:
            value = self.input_value(name)
            held = unmerged_register(self.m, value, name=f"{name}_here")
            assert isinstance(held, Signal)
            self._held[name] = held
        return self._held[name]

    def early_bit_value(self, bit: Bit) -> Value:
        """Return a control bit one cycle before it acts, as the input of a register of the module.

        `bit` has its source: a constant, a bit of the sequencer, or a table of the node.
        """
        if bit.place is BitPlace.CONSTANT:
            return Const(bit.number, 1)
        if bit.place is BitPlace.TABLE:
            shown = self.input_value(f"table_{bit.table}")[bit.number]
            return delay_value(self.m, shown, bit.held) if bit.held else shown
        return self.input_value("columns")[bit.number]

    def bit_value(self, bit: Bit) -> Value:
        """Return a control bit in the cycle in which it acts, for example at a memory.

        `bit` has its source. A constant or a bit of a table is returned as in `early_bit_value`.
        The planner lets a table show a bit one cycle earlier if the module registers it. A bit of
        the sequencer always comes a cycle early, and passes the register of the node.
        """
        if bit.place is BitPlace.COLUMN:
            return self.node_register("columns")[bit.number]
        return self.early_bit_value(bit)

    def number_value(self, bits: Sequence[Bit]) -> Value:
        """Return a control number, such as an address, in the cycle in which the node uses it.

        `bits` has the source of each bit of the number (a constant, a bit of the sequencer, or a
        table of the node), the least significant first. The result is the concatenation of these
        bits, each delayed by the cycles by which its source is early.
        """
        return Cat(*map(self.bit_value, bits))

    def run_operator_code(self) -> Value:
        """Return the bits that select the operator of the run; 0 if the module has no such input.

        They come from the register of the node, in the cycle in which they act.
        """
        known = "operator_code" in self.signature.members
        return self.node_register("operator_code") if known else Const(0, 0)

    def identity_word(self) -> Value:
        """Return the word that does not change the result of the run's operator: 0 for a sum."""
        unit, width = self.settings.unit, self.settings.width
        return unit.identity_word(self.run_operator_code(), width) if unit else Const(0, width)

    def word_value(self, word: LocalWord) -> Value:
        """Return the signal of a word at the inputs of the module, or the identity word.

        ``word.position`` says which one; the identity word leaves the result of an operator
        unchanged. If ``word.late`` is true, the signal is delayed by a cycle.
        """
        if word == IDENTITY_WORD:
            return self.identity_word()
        now = self.available_words[word.position]
        if not word.late:
            return now
        if word.position not in self._late:
            name = f"word_{word.position}_d1"
            self._late[word.position] = Signal(self.settings.width, reset_less=True, name=name)
            self.m.d.sync += self._late[word.position].eq(now)
        return self._late[word.position]

    def word_count(self, port: str) -> int:
        """Return the number of words, side by side, at the input `port`, such as "rx"."""
        return self._given.get(port, 0)

    @property
    def available_words(self) -> list[Value]:
        """The signals of all words at the inputs of the module: first `rx`, then `inject`."""
        return [
            word
            for port, count in self._given.items()
            if count
            for word in self.input_words(port, self.settings.width)
        ]

    def choose_word(self, choice: NodeMultiplexer, name: str) -> Value:
        """Add the multiplexer `choice`, and return the word that it passes (0 if it has no inputs).

        Parameters
        ----------
        choice : NodeMultiplexer
            The words of the multiplexer, and the sources of its select bits.
        name : str
            The name of the multiplexer in emitted Verilog.
        """
        return self.select_word(choice, [self.word_value(word) for word in choice.words], name)

    def select_word(self, choice: NodeMultiplexer, inputs: Sequence[Value], name: str) -> Value:
        """Add a multiplexer of the signals `inputs`, and return the word that it passes.

        The select bits are those of `choice`, the words are `inputs`. In contrast to this,
        `choose_word` takes select bits and words from `choice`.

        Parameters
        ----------
        choice : NodeMultiplexer
            The multiplexer whose select bits are used.
        inputs : sequence of Value
            The input words, as many as `choice` has.
        name : str
            The name of the multiplexer in emitted Verilog.
        """
        code = Cat(*map(self.early_bit_value, choice.bits))
        return self.select_with_early_bits(code, inputs, name, branched=choice.branched)

    def select_with_early_bits(
        self,
        code: Value,
        inputs: Sequence[Value],
        name: str,
        *,
        branched: bool,
        small: bool = False,
    ) -> Value:
        """Add a multiplexer with registered select bits, and return the word that it passes.

        Parameters
        ----------
        code : Value
            The select bits, one cycle before they come to the multiplexer.
        inputs : sequence of Value
            The input words.
        name : str
            The name of the multiplexer in emitted Verilog.
        branched : bool
            True for two branches that select in parallel, False for one chain of LUTs.
        small : bool
            True to prefer few LUTs to a fast clock. `continued_cascade` needs it: only this form
            passes constants for the codes of later inputs.
        """
        if not self.is_unbound and len(code):
            code = unmerged_register(self.m, code, name=f"{name}_select")
        return add_multiplexer(
            self.m,
            inputs,
            code,
            max(map(len, inputs), default=self.settings.width),
            name=name if self.is_unbound else None,
            branched=branched,
            small=small,
        )


def operator_code_input(
    settings: NodeSettings, *, neutral: bool, combines: bool = False
) -> dict[str, Member]:
    """Return the input ``operator_code`` of a module: the bits that select the operator of a run.

    The result maps the name to the Amaranth member. Its width is 0, so that the input is absent, if
    the module needs no such bits.

    Parameters
    ----------
    settings : NodeSettings
        The properties that all nodes share.
    neutral : bool
        True if the module uses the identity word, which leaves the result of an operator unchanged.
    combines : bool
        True if the module combines words.
    """
    unit = settings.unit
    if unit is None:
        return {}
    bits = unit.identity_bits(settings.width) * neutral
    return {"operator_code": In(max(bits, unit.n_control_bits * combines))}
