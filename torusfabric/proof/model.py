"""Harnesses with a model beside a module: what surrounds it, what it should do, what it does.

A model is a few registers that say in other words what the module has to remember: how many runs
have begun, which word of which packet comes next. The surroundings are free, but for what is
assumed of them; claims compare the module with the model. All registers of a model are 0 after a
reset, and a reset may come at any time; the first cycle is one. Where claims look back a few cycles
and no further, nothing is said of resets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .solver import Harness

if TYPE_CHECKING:
    from ..verilog.design import Design

__all__ = ["Model", "by_value", "within"]

#: Cycles that are searched for a counterexample that begins with a reset.
DEPTH = 20

#: Whether there was a cycle before, and whether it was one without a reset.
STEADY = ["reg past = 0, steady = 0;",
          "always @(posedge clk) begin past <= 1; steady <= !rst; end"]  # fmt: skip

#: Bits of the number of cycles for which there has been anything, at the least.
AGE_BITS = 4


def by_value(values: Iterable[int], chosen: str) -> str:
    """A constant for each value of an expression, in Verilog.

    Examples
    --------
    >>> by_value([3, 3], "mode"), by_value([1, 2, 4], "mode")
    ('3', '(mode == 0 ? 1 : mode == 1 ? 2 : 4)')
    """
    *others, last = map(int, values)
    if all(value == last for value in others):
        return str(last)
    cases = [f"{chosen} == {k} ? {value}" for k, value in enumerate(others)]
    return f"({' : '.join([*cases, str(last)])})"


def within(name: str, number: str, bits: int) -> str:
    """One of several fields of a vector, in Verilog."""
    return f"{name}[({number}) * {bits} +: {bits}]"


class Model:
    """A harness in the making.

    Parameters
    ----------
    name : str
        The name of the module in the text, but for the prefix of all.
    shows : sequence of str
        Registers that claims refer to, besides the ports, as far as the module has them.
    constants : sequence of str
        Inputs that never change.
    resets : bool
        Whether it begins with a reset, and nothing is claimed while there is one; else claims hold
        at all times, as soon as there is what they look back to.
    """

    def __init__(
        self,
        design: Design,
        name: str,
        *,
        shows: Sequence[str] = (),
        constants: Sequence[str] = (),
        resets: bool = True,
    ) -> None:
        self._design, self._name, self._module = design, name, design.prefix + name
        self._lines: list[str] = []
        self._driven: dict[str, str] = {}
        self._claims: list[str] = []
        self._pasts: dict[tuple[str, int], str] = {}
        self._properties, self._resets, self._looks_back = 0, resets, 0
        made = design.structures[self._module]
        self.widths = {name: port.width for name, port in made.ports.items()}
        self.widths |= made.signals
        self._inputs = [name for name, port in made.ports.items() if port.direction == "input"]
        self._shows = tuple(name for name in shows if name in made.signals)
        self._ports = [*made.ports, *self._shows]
        self._constants = set(constants)

    def has(self, name: str) -> bool:
        """Whether the text has a port or a register of a name."""
        return name in self.widths

    def width(self, name: str) -> int:
        """Bits of a port or of a register; 0 where there is none."""
        return self.widths.get(name, 0)

    def input(self, name: str, width: int) -> None:
        """An input that is free; it is of no effect where the module has none of this name."""
        if name not in self._ports:
            self.free(name, width)
            self.widths[name] = width

    def free(self, name: str, width: int = 1) -> str:
        """A value that is free in every cycle."""
        self._lines.append(f"(* anyseq *) wire {_range(width)}{name};")
        return name

    def fixed(self, name: str, width: int = 1) -> str:
        """A value that is free, but never changes."""
        self._lines.append(f"(* anyconst *) wire {_range(width)}{name};")
        return name

    def drive(self, port: str, value: str) -> None:
        """Give an input a value of the model."""
        self._driven[port] = value

    def wire(self, name: str, value: str, width: int = 1, *, signed: bool = False) -> str:
        """A name for a value."""
        self._lines.append(f"wire {'signed ' * signed}{_range(width)}{name} = {value};")
        return name

    def register(self, name: str, following: str, width: int = 1, *, signed: bool = False) -> str:
        """A register of the model, and what it is next."""
        self.widths[name] = width
        self._lines.append(f"reg {'signed ' * signed}{_range(width)}{name};")
        self._lines.append(f"always @(posedge clk) {name} <= rst ? 0 : {following};")
        return name

    def past(self, name: str, value: str, width: int = 1) -> str:
        """What a value was a cycle ago; it means something where `steady` is 1."""
        self._lines.append(f"reg {_range(width)}{name};")
        self._lines.append(f"always @(posedge clk) {name} <= {value};")
        return name

    def parts(self, name: str, count: int, width: int) -> Iterator[tuple[int, str, str]]:
        """The fields of a vector: of each its number, what it is now, and what a cycle ago."""
        before = self.past(f"past_{name}", name, count * width)
        for k in range(count):
            yield k, within(name, str(k), width), within(before, str(k), width)

    def ago(self, value: str, cycles: int, width: int = 1) -> str:
        """What a value was some cycles ago; ports have widths of their own."""
        if not cycles:
            return value
        key = value, cycles
        if key not in self._pasts:
            before = self.ago(value, cycles - 1, width)
            name = f"ago_{len(self._pasts)}"
            self._pasts[key] = self.past(name, before, self.width(value) or width)
        return self._pasts[key]

    def word(self, port: str, number: int, width: int, *, ago: int = 0) -> str:
        """A word of a port, now or some cycles ago."""
        name = self.ago(port, ago)
        return name if self.width(port) == 1 else f"{name}[{number * width} +: {width}]"

    def assume(self, condition: str) -> None:
        """Assume something of the surroundings, outside resets."""
        self._claims.append(f"if (!rst) assume ({condition});")

    def claim(self, name: str, condition: str, *, ago: int = 0) -> None:
        """Claim something of the module, by which nothing is meant that was longer ago."""
        self._looks_back = max(self._looks_back, ago)
        known = "past && !rst" if self._resets else f"age >= {ago}"
        self._claims.append(f"if ({known}) {name}: assert ({condition});")
        self._properties += 1

    def claims(self, claims: Mapping[str, str]) -> None:
        """Claim several things."""
        for name, condition in claims.items():
            self.claim(name, condition)

    def harness(self, says: str, *, cycles: int | None = None) -> Harness:
        """The harness, and what its claims come to in a line.

        So many cycles of it are assumed in an induction: if it is not said, as many as claims look
        back, and one more.
        """
        names = [self._module]
        for parent in names:
            inside = self._design.instances.get(parent, {})
            names += [child for child in inside if child not in names]
        return Harness(
            self._name,
            self._text(),
            "\n".join(self._design.modules[each] for each in names),
            self._properties,
            cycles or self._looks_back + 1,
            says,
            shown=tuple(f"{self._module}/{each}" for each in self._shows),
            depth=DEPTH * self._resets,
        )

    def _text(self) -> str:
        """The text of the harness."""
        free = [n for n in self._inputs if n not in self._constants and n not in self._driven]
        # A module without registers has neither, but the model has.
        head = [f"input {name}" for name in ("clk", "rst") if name not in self._ports]
        head += [f"input {_range(self.widths[name])}{name}" for name in free]
        rest = [name for name in self._ports if name not in free]
        # A name that the text does not have is an error, and no value that is free.
        lines = ["`default_nettype none", f"module harness({', '.join(head)});"]
        lines += [
            f"{'(* anyconst *) ' * (name in self._constants)}wire {_range(self.widths[name])}"
            f"{name};"
            for name in rest
        ]
        pins = ", ".join(f".{name}({name})" for name in self._ports)
        lines += [
            f"{self._module} dut ({pins});",
            *(STEADY if self._resets else _age(self._looks_back)),
            *self._lines,
            *(f"assign {name} = {value};" for name, value in self._driven.items()),
            "always @* begin",
            *["if (!past) assume (rst);"] * self._resets,
            *self._claims,
            "end",
            "endmodule",
        ]
        return "\n".join([*lines, ""])


def _age(most: int) -> list[str]:
    """For how many cycles there has been anything, up to the most that matter."""
    bits = max(AGE_BITS, most.bit_length())
    return [f"reg [{bits - 1}:0] age = 0;", "always @(posedge clk) age <= age + !(&age);"]


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""
