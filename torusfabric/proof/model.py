"""`Model`: builder of a harness that compares a module with registers of a behavioural model.

The harness is a Verilog module around the module under proof::

    free inputs ---+---> module under proof ---> outputs ---+
    (any values)   |                                        +---> assertions (claims)
                   +---> model registers -------------------+

Model registers restate the state of the module, such as the number of runs begun or the position in
a packet. All model registers are 0 after a reset. A model with resets begins with one in its first
cycle, and a reset may follow at any time. A model without resets suits claims that look back a
fixed number of cycles.

Expressions are Verilog texts. They may name ports, registers inside the module, and names that the
model defines, which take precedence. ``$past(value)`` is the value one cycle earlier, as in
SystemVerilog; it is valid in cycles in which `steady` is 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .solver import Harness

if TYPE_CHECKING:
    from ..verilog.design import Design

__all__ = ["Model", "by_value", "earlier", "stays", "within"]

#: Start of an expression for a value one cycle earlier.
PAST = "$past("

#: A name in an expression; excludes system functions such as $past, and letters in numbers.
NAME = r"(?<![$'\w])[A-Za-z_]\w*"

#: Cycles after a reset that are searched for a counterexample.
DEPTH = 20

#: `past` is 1 from the second cycle on; `steady` is 1 if the previous cycle had no reset.
STEADY = ["reg past = 0, steady = 0;",
          "always @(posedge clk) begin past <= 1; steady <= !rst; end"]  # fmt: skip

#: Least width of the cycle counter `age`.
AGE_BITS = 4


def by_value(values: Iterable[int], chosen: str) -> str:
    """Return a Verilog expression that selects a constant by the value of an expression.

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
    """Return the Verilog for field `number` of a vector of fields of `bits` bits."""
    return f"{name}[({number}) * {bits} +: {bits}]"


def earlier(value: str, cycles: int = 1) -> str:
    """Return the Verilog for a value some cycles earlier.

    Examples
    --------
    >>> earlier("rst", 2), earlier("rst", 0)
    ('$past($past(rst))', 'rst')
    """
    return PAST * cycles + value + ")" * cycles


def stays(value: str, while_: str) -> str:
    """Return the Verilog condition that a value keeps its previous value if `while_` held then.

    Examples
    --------
    >>> stays("tlast", "tvalid && !tready")
    '!steady || !$past(tvalid && !tready) || tlast == $past(tlast)'
    """
    return f"!steady || !$past({while_}) || {value} == $past({value})"


class Model:
    """Builder of a harness for one module.

    Parameters
    ----------
    design : Design
        The emitted Verilog.
    name : str
        Name of the module without the prefix of the design.
    constants : sequence of str
        Inputs that never change.
    resets : bool
        True for a harness that begins with a reset, whose claims hold outside resets. False for a
        harness whose claims hold in every cycle that has enough cycles before it to look back to.
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
        # Cycles that each defined name looks back.
        self._ages: dict[str, int] = {}
        # Names used in expressions, and names that the model defines.
        self._named, self._defined = set[str](), set[str]()
        self._properties, self._resets, self._looks_back = 0, resets, 0
        made = design.structures[self._module]
        self.widths = {name: port.width for name, port in made.ports.items()}
        self.widths |= made.signals
        self._inputs = [name for name, port in made.ports.items() if port.direction == "input"]
        self._ports, self._signals = [*made.ports], [*made.signals]
        self._constants = set(constants)

    def has(self, name: str) -> bool:
        """Return True if the module has a port or a register with this name."""
        return name in self.widths

    def width(self, name: str) -> int:
        """Return the bits of a port or register of the module; 0 if there is none."""
        return self.widths.get(name, 0)

    def free(self, name: str, width: int = 1) -> str:
        """Define a value that may be different in every cycle; returns its name."""
        return self._define(name, f"(* anyseq *) wire {_range(width)}{name};")

    def fixed(self, name: str, width: int = 1) -> str:
        """Define a value that is arbitrary but constant over time; returns its name."""
        return self._define(name, f"(* anyconst *) wire {_range(width)}{name};")

    def drive(self, port: str, value: str) -> None:
        """Drive an input of the module with an expression."""
        self._driven[port] = self._held(value)

    def wire(self, name: str, value: str, width: int = 1, *, signed: bool = False) -> str:
        """Define a name for an expression; returns the name."""
        value = self._held(value)
        self._ages[name] = self._age(value)
        return self._define(name, f"wire {'signed ' * signed}{_range(width)}{name} = {value};")

    def register(self, name: str, following: str, width: int = 1, *, signed: bool = False) -> str:
        """Define a model register with the expression for its next value; returns its name."""
        following = f"always @(posedge clk) {name} <= rst ? 0 : {self._held(following)};"
        return self._define(name, f"reg {'signed ' * signed}{_range(width)}{name};", following)

    def _define(self, name: str, *lines: str) -> str:
        """Append the lines that define a name; returns the name."""
        self._defined.add(name)
        self._lines += lines
        return name

    def _held(self, text: str) -> str:
        """Return an expression with a register in place of each ``$past(..)``, innermost first."""
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
        """Return the register that holds a value for one cycle."""
        if value not in self._pasts:
            self._pasts[value] = name = f"past_{len(self._pasts)}"
            self._ages[name] = self._age(value) + 1
            self._lines.append(f"reg [$bits({{{value}}})-1:0] {name};")
            self._lines.append(f"always @(posedge clk) {name} <= {value};")
        return self._pasts[value]

    def _age(self, text: str) -> int:
        """Return the number of cycles that an expression looks back."""
        return max((self._ages.get(name, 0) for name in re.findall(r"\w+", text)), default=0)

    def parts(self, name: str, count: int, width: int) -> Iterator[tuple[int, str, str]]:
        """Yield the fields of a vector: number, expression now, and one cycle earlier."""
        for k in range(count):
            now = within(name, str(k), width)
            yield k, now, f"$past({now})"

    def word(self, port: str, number: int, width: int, *, ago: int = 0) -> str:
        """Return the Verilog for a word of a port, `ago` cycles earlier."""
        word = port if self.width(port) == 1 else f"{port}[{number * width} +: {width}]"
        return earlier(word, ago)

    def assume(self, condition: str) -> None:
        """Assume a condition on the inputs in all cycles outside resets."""
        self._claims.append(f"if (!rst) assume ({self._held(condition)});")

    def claim(self, name: str, condition: str, *, ago: int = 0) -> None:
        """Assert a condition in every cycle.

        Without resets, the assertion starts in the first cycle that is late enough to look back: at
        least `ago` cycles, and as many as the condition needs.
        """
        condition, known = self._held(condition), "past && !rst"
        if not self._resets:
            age = max(self._age(condition), ago)
            self._looks_back, known = max(self._looks_back, age), f"age >= {age}"
        self._claims.append(f"if ({known}) {name}: assert ({condition});")
        self._properties += 1

    def claims(self, claims: Mapping[str, str]) -> None:
        """Assert several conditions by name."""
        for name, condition in claims.items():
            self.claim(name, condition)

    def harness(self, says: str, *, cycles: int | None = None) -> Harness:
        """Return the harness.

        Parameters
        ----------
        says : str
            The proved statement, in one line.
        cycles : int, optional
            Number of cycles in which the induction assumes all assertions. By default one, and
            without resets one more than the claims look back.
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
        """Return the Verilog of the harness; `pins` are the connected ports and registers."""
        free = [n for n in self._inputs if n not in self._constants and n not in self._driven]
        # The model needs clk and rst even around a module without registers.
        head = [f"input {name}" for name in ("clk", "rst") if name not in self._ports]
        head += [f"input {_range(self.widths[name])}{name}" for name in free]
        rest = [name for name in pins if name not in free]
        # With this directive a misspelt name is an error; otherwise it would be a free wire.
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
    """Return the counter of past cycles, which saturates at or above `most`."""
    bits = max(AGE_BITS, most.bit_length())
    return [f"reg [{bits - 1}:0] age = 0;", "always @(posedge clk) age <= age + !(&age);"]


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""
