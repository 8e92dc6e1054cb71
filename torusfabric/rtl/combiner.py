"""The combiner: an adder, or other operators, behind each in-port.

In the text, sums of a word and one of several others are modules. Where there are carry chains
whose tables have inputs to spare, a part of the choice goes there: see `torusfabric.verilog.ecp5`.
Other operators are instances of one module, as they are in endpoints: a proof looks at it once.
"""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from ..program.timing import COMBINE
from .chosen_sum import ChosenSum
from .modules import Use, apart
from .multiplexer import (
    held_slices,
    multiplexed,
)
from .netlist import Leaf
from .operator_unit import OperatorUnit, add_pair
from .router import Crossbar, select_registers

__all__ = ["Combiner"]

assert COMBINE == 1, "a result has one register, besides those of the operator's own hardware"


class Combiner(Leaf):
    """Combines what arrives at each in-port with what is there of the sum it belongs to.

    A result is there one cycle after the word has arrived; a word passes in every cycle.

    Parameters
    ----------
    crossbar : Crossbar
        What each in-port's words are combined with: results, then the registers behind them, then
        what is made, if that is given away, then injection ports, then the word that changes
        nothing.
    delayed : sequence of int
        The in-ports whose results have a second register behind them.
    made : bool
        Whether results are given away before they are in their registers, too.
    injections : int
        Number of injection ports.
    width : int
        Bits of a word.

    Members
    -------
    select : In
        The select bits, a cycle before the words that they concern arrive.
    operator_code : In
        The control bits of the operator, while a run is under way; if there are several.
    enable : In(1)
        Whether words advance, a cycle before they do.
    rx : In(ports * width)
        A word from each in-port.
    inject : In(injections * width)
        A word from each injection port, if any.
    result : Out((ports + registers) * width)
        A result for each in-port, and those of the cycle before for `delayed`.
    made : Out(ports * width)
        The results of the next cycle, if they are given away.
    """

    def __init__(
        self,
        crossbar: Crossbar,
        *,
        unit: OperatorUnit,
        delayed: Sequence[int],
        made: bool = False,
        injections: int,
        width: int,
    ) -> None:
        ports = len(crossbar.outputs)
        self._crossbar, self._unit = crossbar, unit
        self._delayed, self._injections, self._width = delayed, injections, width
        self._made = made
        super().__init__(
            {
                "enable": In(1),
                "rx": In(ports * width),
                "inject": In(injections * width),
                "result": Out((ports + len(delayed)) * width),
                "select": In(crossbar.rom.shape[1]),
                "operator_code": In(unit.bits),
                "made": Out(ports * width * made),
            }
        )
        self.result = Signal((ports + len(delayed)) * width, reset_less=True, name="result")
        if made:
            self.made = Signal(ports * width, name="made")

    def elaborate(self, platform: object) -> Module:
        """Build the crossbar of operands, and an operator and register behind each in-port."""
        m, unit = Module(), self._unit
        width, arriving = self._width, self.words("rx", self._width)
        early = self.value("select") if self._crossbar.rom.shape[1] else []
        outputs = self._crossbar.outputs
        selects = select_registers(m, outputs, [*early], alone=self.alone)
        there = [self.result[k : k + width] for k in range(0, len(self.result), width)]
        code = Const(0, 0)
        if unit.bits:
            code = apart(m, self.value("operator_code"), name="operator_here")
        injected = self.words("inject", width) if self._injections else []
        # Nothing is combined with what is only made in the same cycle.
        made = [Const(0, width)] * len(outputs) if self._made else []
        words = [*there, *made, *injected, unit.identity(code, width)]
        results = [
            self.combined(m, port, word, [words[k] for k in output.sources], select, code)
            for port, (word, output, select) in enumerate(
                zip(arriving, outputs, selects, strict=True)
            )
        ]
        if self._made:
            m.d.comb += self.made.eq(Cat(*results))
            results = [self.made[k * width : (k + 1) * width] for k in range(len(outputs))]
        with m.If(apart(m, self.value("enable"), name="enable_here")):
            m.d.sync += self.result.eq(Cat(*results, *(there[q] for q in self._delayed)))
        return m

    def combined(
        self,
        m: Module,
        port: int,
        word: Value,
        inputs: Sequence[Value],
        select: Value,
        code: Value,
    ) -> Value:
        """What the word of an in-port and that of its operands which is selected make."""
        if not inputs:
            return Const(0, self._width)  # nothing that arrives here is combined
        name = f"at_port_{port}" if self.alone else None
        if name and self._unit.adds and len(inputs) > 1:
            return self._sum(m, word, inputs, select, name)
        other = multiplexed(m, inputs, select, self._width, name=name, branched=True)
        return add_pair(m, self._unit, (word, other), code, name=name)

    def _sum(
        self, m: Module, word: Value, inputs: Sequence[Value], select: Value, name: str
    ) -> Signal:
        """The sum of a word and one of several inputs; a constant, the last of them, is nothing."""
        meant = ChosenSum(len(inputs), self._width, isinstance(inputs[-1], Const))
        held = Cat(*map(Cat, held_slices(m, select, self._width, name=name)))
        total, words = Signal(self._width, name=f"{name}_total"), Cat(*inputs[: meant.words])
        pins = {"i_word": word, "i_words": words, "i_select": held, "o_total": total}
        m.submodules[name] = Use(meant.shared, **pins)
        return total
