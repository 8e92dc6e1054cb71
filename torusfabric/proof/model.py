"""`HarnessBuilder`: builder of a harness that compares a module with a behavioural model.

The harness is a Verilog module around the module under proof::

    free inputs ---+---> module under proof ---> outputs ---+
    (any values)   |                                        +---> assertions (claims)
                   +---> model registers -------------------+

Model registers restate the state of the module, such as the number of runs begun or the position in
a packet. All model registers are 0 after a reset. In a model with resets, the first cycle is a
reset, and further resets may follow at any time. A model without resets suits claims that look back
a fixed number of cycles.

Expressions are Verilog texts. They may name ports, registers inside the module, and names that the
model defines, which take precedence. ``$past(value)`` is the value one cycle earlier, as in
SystemVerilog; it is valid in cycles in which `steady` is 1.

A *claim* becomes an assertion of the harness. *Outside resets* means: in every cycle in which the
reset is low.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .solver import Harness

if TYPE_CHECKING:
    from ..verilog.design import Design

__all__ = ["HarnessBuilder", "select_by_value", "earlier_value", "is_stable", "vector_field"]

#: Start of an expression for a value one cycle earlier.
PAST = "$past("

#: A name in an expression; excludes system functions such as $past, and letters in numbers.
NAME_PATTERN = r"(?<![$'\w])[A-Za-z_]\w*"

#: Cycles after a reset that are searched for a counterexample.
SEARCH_DEPTH = 20

#: `past` is 1 from the second cycle on; `steady` is 1 if the previous cycle had no reset.
STEADY_LINES = ["reg past = 0, steady = 0;",
          "always @(posedge clk) begin past <= 1; steady <= !rst; end"]  # fmt: skip

#: Least width of the cycle counter `age`.
AGE_BITS = 4


def select_by_value(values: Iterable[int], chosen: str) -> str:
    """Return Verilog that selects one of the constants `values` by the expression `chosen`.

    Examples
    --------
    >>> select_by_value([3, 3], "mode"), select_by_value([1, 2, 4], "mode")
    ('3', '(mode == 0 ? 1 : mode == 1 ? 2 : 4)')
    """
    *others, last = map(int, values)
    if all(value == last for value in others):
        return str(last)
    cases = [f"{chosen} == {k} ? {value}" for k, value in enumerate(others)]
    return f"({' : '.join([*cases, str(last)])})"


def vector_field(name: str, number: str, bits: int) -> str:
    """Return the Verilog for one field of a vector whose fields lie side by side.

    Parameters
    ----------
    name : str
        Name of the vector.
    number : str
        Expression of the number of the field; 0 is the one with the lowest bits.
    bits : int
        Bits of a field.

    Examples
    --------
    >>> vector_field("lengths", "mode", 8)
    'lengths[(mode) * 8 +: 8]'
    """
    return f"{name}[({number}) * {bits} +: {bits}]"


def earlier_value(value: str, cycles: int = 1) -> str:
    """Return the Verilog for a value some cycles earlier.

    Examples
    --------
    >>> earlier_value("rst", 2), earlier_value("rst", 0)
    ('$past($past(rst))', 'rst')
    """
    return PAST * cycles + value + ")" * cycles


def is_stable(value: str, while_: str) -> str:
    """Return the Verilog condition that a value keeps its previous value if `while_` held then.

    Examples
    --------
    >>> is_stable("tlast", "tvalid && !tready")
    '!steady || !$past(tvalid && !tready) || tlast == $past(tlast)'
    """
    return f"!steady || !$past({while_}) || {value} == $past({value})"


class HarnessBuilder:
    """Builder of a harness: a Verilog module around one module of the fabric, with assertions.

    A proof adds model registers, wires, assumptions and claims, and then makes the harness. A model
    register restates a part of the module's state; a claim becomes an assertion::

        model = HarnessBuilder(design, "counter")
        model.add_register("pulses", "pulses + enable", 8)      # the behaviour, restated
        model.claim("counts_pulses", "count == pulses")         # the module agrees
        harness = model.make_harness("the counter counts the cycles with enable")

    Parameters
    ----------
    design : Design
        The emitted Verilog.
    name : str
        Name of the module without the prefix of the design.
    constants : sequence of str
        Inputs of the module whose values never change.
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

    def has_name(self, name: str) -> bool:
        """Return True if the module has a port or a register with this name."""
        return name in self.widths

    def port_width(self, name: str) -> int:
        """Return the number of bits of the port or register `name`; 0 if the module has none."""
        return self.widths.get(name, 0)

    def add_free_value(self, name: str, width: int = 1) -> str:
        """Define a value that may be different in every cycle; returns its name.

        Parameters
        ----------
        name : str
            Name of the value.
        width : int
            Bits of the value.
        """
        return self._define_name(name, f"(* anyseq *) wire {_bit_range(width)}{name};")

    def add_constant_value(self, name: str, width: int = 1) -> str:
        """Define a value that is arbitrary but constant over time; returns its name.

        Parameters
        ----------
        name : str
            Name of the value.
        width : int
            Bits of the value.
        """
        return self._define_name(name, f"(* anyconst *) wire {_bit_range(width)}{name};")

    def drive_input(self, port: str, value: str) -> None:
        """Connect the input `port` of the module to the expression `value`."""
        self._driven[port] = self._replace_past(value)

    def add_wire(self, name: str, value: str, width: int = 1, *, signed: bool = False) -> str:
        """Define a wire with the value of an expression; returns its name.

        Parameters
        ----------
        name : str
            Name of the wire.
        value : str
            The expression.
        width : int
            Bits of the wire.
        signed : bool
            True for a signed wire.
        """
        value = self._replace_past(value)
        self._ages[name] = self._look_back_cycles(value)
        return self._define_name(
            name, f"wire {'signed ' * signed}{_bit_range(width)}{name} = {value};"
        )

    def add_register(
        self, name: str, following: str, width: int = 1, *, signed: bool = False
    ) -> str:
        """Define a model register: a register of the harness that restates a state of the module.

        The result is its name.

        Parameters
        ----------
        name : str
            Name of the register.
        following : str
            Expression of the value after the next clock edge; a reset sets the register to 0.
        width : int
            Bits of the register.
        signed : bool
            True for a signed register.
        """
        following = f"always @(posedge clk) {name} <= rst ? 0 : {self._replace_past(following)};"
        return self._define_name(
            name, f"reg {'signed ' * signed}{_bit_range(width)}{name};", following
        )

    def _define_name(self, name: str, *lines: str) -> str:
        """Append the Verilog lines that define a name to the harness; returns the name."""
        self._defined.add(name)
        self._lines += lines
        return name

    def _replace_past(self, text: str) -> str:
        """Return an expression in which each ``$past(..)`` is replaced by a register.

        The register holds the value in the brackets for one cycle. The innermost ``$past(..)`` of
        `text` is replaced first.
        """
        self._named.update(re.findall(NAME_PATTERN, text))
        while (at := text.rfind(PAST)) >= 0:
            first = end = at + len(PAST)
            depth = 1
            while depth:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            text = text[:at] + self._past_register(text[first : end - 1]) + text[end:]
        return text

    def _past_register(self, value: str) -> str:
        """Return the name of a register that has the value of `value` one cycle later.

        The register is added to the harness at the first call with this expression.
        """
        if value not in self._pasts:
            self._pasts[value] = name = f"past_{len(self._pasts)}"
            self._ages[name] = self._look_back_cycles(value) + 1
            self._lines.append(f"reg [$bits({{{value}}})-1:0] {name};")
            self._lines.append(f"always @(posedge clk) {name} <= {value};")
        return self._pasts[value]

    def _look_back_cycles(self, text: str) -> int:
        """Return the number of cycles that the expression `text` looks back, 0 without ``$past``.

        The calls ``$past(..)`` have been replaced by registers before.
        """
        return max((self._ages.get(name, 0) for name in re.findall(r"\w+", text)), default=0)

    def vector_fields(self, name: str, count: int, width: int) -> Iterator[tuple[int, str, str]]:
        """Yield the `count` fields of vector `name`, which lie side by side with `width` bits each.

        Yields
        ------
        number : int
            Number of the field.
        now, before : str
            Expressions of the field in this cycle, and one cycle earlier.
        """
        for k in range(count):
            now = vector_field(name, str(k), width)
            yield k, now, f"$past({now})"

    def port_word(self, port: str, number: int, width: int, *, ago: int = 0) -> str:
        """Return the Verilog for word `number` of a port, `ago` cycles earlier.

        The words of the port have `width` bits each and lie side by side.
        """
        word = port if self.port_width(port) == 1 else f"{port}[{number * width} +: {width}]"
        return earlier_value(word, ago)

    def assume(self, condition: str) -> None:
        """Assume a condition on the inputs in all cycles outside resets."""
        self._claims.append(f"if (!rst) assume ({self._replace_past(condition)});")

    def claim(self, name: str, condition: str, *, ago: int = 0) -> None:
        """Add an assertion: the condition holds in every cycle that is not a reset.

        Parameters
        ----------
        name : str
            Name of the assertion.
        condition : str
            The condition, an expression.
        ago : int
            For a model without resets, the number of cycles that must have passed before the first
            check. If the condition itself looks back further, by ``$past``, its own number counts.
        """
        condition, known = self._replace_past(condition), "past && !rst"
        if not self._resets:
            age = max(self._look_back_cycles(condition), ago)
            self._looks_back, known = max(self._looks_back, age), f"age >= {age}"
        self._claims.append(f"if ({known}) {name}: assert ({condition});")
        self._properties += 1

    def claim_all(self, claims: Mapping[str, str]) -> None:
        """Add several `claims`, name -> condition, as `claim` does."""
        for name, condition in claims.items():
            self.claim(name, condition)

    def make_harness(self, says: str, *, cycles: int | None = None) -> Harness:
        """Return the finished harness, with all registers, assumptions and claims so far.

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
            self._harness_text([*self._ports, *shown]),
            "\n".join(self._design.modules[each] for each in names),
            self._properties,
            cycles or self._looks_back + 1,
            says,
            shown=tuple(f"{self._module}/{each}" for each in shown),
            depth=SEARCH_DEPTH * self._resets,
        )

    def _harness_text(self, pins: list[str]) -> str:
        """Return the Verilog of the harness; `pins` are the connected ports and registers."""
        free = [n for n in self._inputs if n not in self._constants and n not in self._driven]
        # The model needs clk and rst even around a module without registers.
        head = [f"input {name}" for name in ("clk", "rst") if name not in self._ports]
        head += [f"input {_bit_range(self.widths[name])}{name}" for name in free]
        rest = [name for name in pins if name not in free]
        # With this directive a misspelt name is an error; otherwise it would be a free wire.
        lines = ["`default_nettype none", f"module harness({', '.join(head)});"]
        lines += [
            f"{'(* anyconst *) ' * (name in self._constants)}wire {_bit_range(self.widths[name])}"
            f"{name};"
            for name in rest
        ]
        lines += [
            f"{self._module} dut ({', '.join(f'.{name}({name})' for name in pins)});",
            *(STEADY_LINES if self._resets else _age_counter(self._looks_back)),
            *self._lines,
            *(f"assign {name} = {value};" for name, value in self._driven.items()),
            "always @* begin",
            *["if (!past) assume (rst);"] * self._resets,
            *self._claims,
            "end",
            "endmodule",
        ]
        return "\n".join([*lines, ""])


def _age_counter(most: int) -> list[str]:
    """Return the Verilog of a counter of past cycles, which stops at `most` or above."""
    bits = max(AGE_BITS, most.bit_length())
    return [f"reg [{bits - 1}:0] age = 0;", "always @(posedge clk) age <= age + !(&age);"]


def _bit_range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""
