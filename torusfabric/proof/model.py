"""Harnesses with a model beside a module: what surrounds it, what it should do, what it does.

A model is a few registers that say in other words what the module has to remember: how many runs
have begun, which word of which packet comes next. The surroundings are free, but for what is
assumed of them; claims compare the module with the model. All registers of a model are 0 after a
reset, and a reset may come at any time; the first cycle is one. Where claims look back a few cycles
and no further, nothing is said of resets.

All is Verilog. Texts may refer to ports, to registers inside the module, and to what the model
defines; a name that the model defines is that of the model. As in clocked blocks of SystemVerilog,
``$past(value)`` is what a value was a cycle ago; it means something where `steady` is 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .solver import Harness

if TYPE_CHECKING:
    from ..verilog.design import Design

__all__ = ["Model", "by_value", "earlier", "stays", "within"]

#: How what something was a cycle ago begins.
PAST = "$past("

#: A name in a text, and none of a function or in a number.
NAME = r"(?<![$'\w])[A-Za-z_]\w*"

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


def earlier(value: str, cycles: int = 1) -> str:
    """Return the Verilog for a value some cycles ago.

    Examples
    --------
    >>> earlier("rst", 2), earlier("rst", 0)
    ('$past($past(rst))', 'rst')
    """
    return PAST * cycles + value + ")" * cycles


def stays(value: str, while_: str) -> str:
    """That a value is what it was a cycle ago, if something held then, in Verilog.

    Examples
    --------
    >>> stays("tlast", "tvalid && !tready")
    '!steady || !$past(tvalid && !tready) || tlast == $past(tlast)'
    """
    return f"!steady || !$past({while_}) || {value} == $past({value})"


class Model:
    """A harness in the making.

    Parameters
    ----------
    name : str
        The name of the module in the text, but for the prefix of all.
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
        constants: Sequence[str] = (),
        resets: bool = True,
    ) -> None:
        self._design, self._name, self._module = design, name, design.prefix + name
        self._lines: list[str] = []
        self._driven: dict[str, str] = {}
        self._claims: list[str] = []
        self._pasts: dict[str, str] = {}
        # How many cycles ago it was what values with names follow from.
        self._ages: dict[str, int] = {}
        # The names in all texts, and those that the model defines.
        self._named, self._defined = set[str](), set[str]()
        self._properties, self._resets, self._looks_back = 0, resets, 0
        made = design.structures[self._module]
        self.widths = {name: port.width for name, port in made.ports.items()}
        self.widths |= made.signals
        self._inputs = [name for name, port in made.ports.items() if port.direction == "input"]
        self._ports, self._signals = [*made.ports], [*made.signals]
        self._constants = set(constants)

    def has(self, name: str) -> bool:
        """Return True if the text has a port or a register of a name."""
        return name in self.widths

    def width(self, name: str) -> int:
        """Bits of a port or of a register; 0 where there is none."""
        return self.widths.get(name, 0)

    def free(self, name: str, width: int = 1) -> str:
        """A value that is free in every cycle."""
        return self._define(name, f"(* anyseq *) wire {_range(width)}{name};")

    def fixed(self, name: str, width: int = 1) -> str:
        """A value that is free, but never changes."""
        return self._define(name, f"(* anyconst *) wire {_range(width)}{name};")

    def drive(self, port: str, value: str) -> None:
        """Give an input a value of the model."""
        self._driven[port] = self._held(value)

    def wire(self, name: str, value: str, width: int = 1, *, signed: bool = False) -> str:
        """A name for a value."""
        value = self._held(value)
        self._ages[name] = self._age(value)
        return self._define(name, f"wire {'signed ' * signed}{_range(width)}{name} = {value};")

    def register(self, name: str, following: str, width: int = 1, *, signed: bool = False) -> str:
        """A register of the model, and what it is next."""
        following = f"always @(posedge clk) {name} <= rst ? 0 : {self._held(following)};"
        return self._define(name, f"reg {'signed ' * signed}{_range(width)}{name};", following)

    def _define(self, name: str, *lines: str) -> str:
        """Add the lines that define a name."""
        self._defined.add(name)
        self._lines += lines
        return name

    def _held(self, text: str) -> str:
        """A text with registers in place of what was a cycle ago, from the inside out."""
        self._named.update(re.findall(NAME, text))
        while (at := text.rfind(PAST)) >= 0:
            first = end = at + len(PAST)
            depth = 1
            while depth:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            text = text[:at] + self._past(text[first : end - 1]) + text[end:]
        return text

    def _past(self, value: str) -> str:
        """The register that holds what a value was a cycle ago."""
        if value not in self._pasts:
            self._pasts[value] = name = f"past_{len(self._pasts)}"
            self._ages[name] = self._age(value) + 1
            self._lines.append(f"reg [$bits({{{value}}})-1:0] {name};")
            self._lines.append(f"always @(posedge clk) {name} <= {value};")
        return self._pasts[value]

    def _age(self, text: str) -> int:
        """Return the number of cycles that a value looks back."""
        return max((self._ages.get(name, 0) for name in re.findall(r"\w+", text)), default=0)

    def parts(self, name: str, count: int, width: int) -> Iterator[tuple[int, str, str]]:
        """The fields of a vector: of each its number, what it is now, and what a cycle ago."""
        for k in range(count):
            now = within(name, str(k), width)
            yield k, now, f"$past({now})"

    def word(self, port: str, number: int, width: int, *, ago: int = 0) -> str:
        """A word of a port, now or some cycles ago."""
        word = port if self.width(port) == 1 else f"{port}[{number * width} +: {width}]"
        return earlier(word, ago)

    def assume(self, condition: str) -> None:
        """Assume something of the surroundings, outside resets."""
        self._claims.append(f"if (!rst) assume ({self._held(condition)});")

    def claim(self, name: str, condition: str, *, ago: int = 0) -> None:
        """Claim something of the module, as soon as there is what it looks back to, or longer."""
        condition, known = self._held(condition), "past && !rst"
        if not self._resets:
            age = max(self._age(condition), ago)
            self._looks_back, known = max(self._looks_back, age), f"age >= {age}"
        self._claims.append(f"if ({known}) {name}: assert ({condition});")
        self._properties += 1

    def claims(self, claims: Mapping[str, str]) -> None:
        """Claim several things."""
        for name, condition in claims.items():
            self.claim(name, condition)

    def harness(self, says: str, *, cycles: int | None = None) -> Harness:
        """The harness, and what its claims come to in a line.

        So many cycles of it are assumed in an induction: if it is not said, one, and without resets
        as many more as claims look back.
        """
        names = [self._module]
        for parent in names:
            inside = self._design.instances.get(parent, {})
            names += [child for child in inside if child not in names]
        inner = self._named - self._defined - {*self._ports}
        shown = [name for name in self._signals if name in inner]
        return Harness(
            self._name,
            self._text([*self._ports, *shown]),
            "\n".join(self._design.modules[each] for each in names),
            self._properties,
            cycles or self._looks_back + 1,
            says,
            shown=tuple(f"{self._module}/{each}" for each in shown),
            depth=DEPTH * self._resets,
        )

    def _text(self, pins: list[str]) -> str:
        """The text of the harness, in which the module has some pins."""
        free = [n for n in self._inputs if n not in self._constants and n not in self._driven]
        # A module without registers has neither, but the model has.
        head = [f"input {name}" for name in ("clk", "rst") if name not in self._ports]
        head += [f"input {_range(self.widths[name])}{name}" for name in free]
        rest = [name for name in pins if name not in free]
        # A name that the text does not have is an error, and no value that is free.
        lines = ["`default_nettype none", f"module harness({', '.join(head)});"]
        lines += [
            f"{'(* anyconst *) ' * (name in self._constants)}wire {_range(self.widths[name])}"
            f"{name};"
            for name in rest
        ]
        lines += [
            f"{self._module} dut ({', '.join(f'.{name}({name})' for name in pins)});",
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
