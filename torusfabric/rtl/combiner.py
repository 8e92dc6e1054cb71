"""The combiner: an adder, or another operator, behind each in-port."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..collective import Operator
from .apart import apart
from .crossbar import Crossbar, crossbar_words, select_registers
from .netlist import Leaf

__all__ = ["Combiner", "operate"]


def operate(operator: Operator, a: Value, b: Value, width: int) -> Value:
    """What an operator makes of two words, as `Operator.combine` says."""
    match operator.name:
        case "add":
            return (a + b)[:width]
        case "and":
            return a & b
        case "or":
            return a | b
        case "xor":
            return a ^ b
    less = a.as_signed() < b.as_signed() if operator.signed else a < b
    return Mux(less, a, b) if operator.name == "min" else Mux(less, b, a)


class Combiner(Leaf):
    """Combines what arrives at each in-port with what is there of the sum it belongs to.

    A result is there one cycle after the word has arrived; a word passes in every cycle.

    Parameters
    ----------
    crossbar : Crossbar
        What each in-port's words are combined with: results, then the registers behind them, then
        injection ports, then the word that changes nothing.
    operator : Operator
    delayed : sequence of int
        The in-ports whose results have a second register behind them.
    injections : int
        Number of injection ports.
    width : int
        Bits of a word.

    Members
    -------
    select : In
        The select bits, a cycle before the words that they concern arrive.
    enable : In(1)
        Whether words advance, a cycle before they do.
    rx : In(ports * width)
        A word from each in-port.
    inject : In(injections * width)
        A word from each injection port.
    result : Out((ports + registers) * width)
        A result for each in-port, and those of the cycle before for `delayed`.
    """

    def __init__(
        self,
        crossbar: Crossbar,
        *,
        operator: Operator,
        delayed: Sequence[int],
        injections: int,
        width: int,
    ) -> None:
        ports = len(crossbar.outputs)
        self._crossbar, self._operator = crossbar, operator
        self._delayed, self._width = delayed, width
        super().__init__(
            {
                "enable": In(1),
                "rx": In(ports * width),
                "inject": In(injections * width),
                "result": Out((ports + len(delayed)) * width),
            }
            | ({"select": In(crossbar.rom.shape[1])} if crossbar.rom.shape[1] else {})
        )
        self.result = Signal((ports + len(delayed)) * width, reset_less=True)

    def elaborate(self, platform: object) -> Module:
        """Build the crossbar of operands, and an operator and register behind each in-port."""
        m = Module()
        width, arriving = self._width, self.words("rx", self._width)
        early = self.value("select") if self._crossbar.rom.shape[1] else []
        outputs = self._crossbar.outputs
        selects = select_registers(m, outputs, [*early], width, alone=self.alone)
        there = [self.result[k : k + width] for k in range(0, len(self.result), width)]
        neutral = Const(self._operator.identity(width), width)
        words = [*there, *self.words("inject", width), neutral]
        others = crossbar_words(m, self._crossbar, words, selects, width, keep=self.alone)
        results = [
            operate(self._operator, word, other, width)
            for word, other in zip(arriving, others, strict=True)
        ]
        with m.If(apart(m, self.value("enable"), name="enable_here", alone=self.alone)):
            m.d.sync += self.result.eq(Cat(*results, *(there[q] for q in self._delayed)))
        return m
