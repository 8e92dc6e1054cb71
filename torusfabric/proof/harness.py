"""Harnesses: what is asserted of a module, in SystemVerilog that Yosys reads.

A harness gives a module free inputs, remembers what was there some cycles ago, and asserts. Nothing
in it is taken from the module: it sees its ports only.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

__all__ = ["HarnessText"]


@dataclass
class HarnessText:
    """A harness in the making.

    Parameters
    ----------
    module : str
        The module that it is around.

    Examples
    --------
    >>> text = HarnessText("wire")
    >>> text.input("a", 1)
    >>> text.output("b", 1)
    >>> text.claim("b_is_a_later", f"b == {text.past('a', 1, ago=1)}", ago=1)
    >>> text.properties, text.cycles
    (1, 2)
    """

    module: str
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    claims: list[tuple[str, str, int]] = field(default_factory=list)
    _pasts: dict[tuple[str, int], str] = field(default_factory=dict)
    _depth: dict[tuple[str, int], int] = field(default_factory=dict)

    def input(self, name: str, width: int) -> None:
        """Add an input of the module, which is free."""
        self.inputs[name] = width

    def output(self, name: str, width: int) -> None:
        """Add an output of the module."""
        self.outputs[name] = width

    def past(self, value: str, width: int, *, ago: int) -> str:
        """The name of what a value was some cycles ago; ports have widths of their own."""
        if not ago:
            return value
        width = (self.inputs | self.outputs).get(value, width)
        key = value, width
        name = self._pasts.setdefault(key, f"past_{len(self._pasts)}")
        self._depth[key] = max(self._depth.get(key, 0), ago)
        return f"{name}_{ago}"

    def word(self, port: str, number: int, width: int, *, ago: int = 0) -> str:
        """A word of a port, now or some cycles ago."""
        name = self.past(port, width, ago=ago)
        whole = (self.inputs | self.outputs)[port]
        if whole == 1:
            return name
        return f"{name}[{number * width + width - 1}:{number * width}]"

    def claim(self, name: str, condition: str, *, ago: int) -> None:
        """Assert a condition by which nothing is meant that was longer ago."""
        self.claims.append((name, condition, ago))

    @property
    def properties(self) -> int:
        """Number of assertions."""
        return len(self.claims)

    @property
    def cycles(self) -> int:
        """Cycles that the module and the harness look back, and one more."""
        return max(ago for _, _, ago in self.claims) + 1

    def text(self, module: str, ports: Collection[str]) -> str:
        """The text, given the name of the module in the fabric's and those of its ports.

        An input that the module does not have is of no effect on it.
        """
        lines = ["module harness(input clk, input rst"]
        lines += [f"  , input {_range(width)}{name}" for name, width in self.inputs.items()]
        lines.append(");")
        lines += [f"  wire {_range(width)}{name};" for name, width in self.outputs.items()]
        known = [name for name in ("clk", "rst", *self.inputs, *self.outputs) if name in ports]
        lines.append(f"  {module} dut ({', '.join(f'.{name}({name})' for name in known)});")
        lines += self._memory()
        lines += ["  always @* begin"]
        lines += [
            f"    if (age >= {ago}) {name}: assert ({condition});"
            for name, condition, ago in self.claims
        ]
        return "\n".join([*lines, "  end", "endmodule", ""])

    def _memory(self) -> list[str]:
        """Registers with what was there some cycles ago, and for how long they have it."""
        lines, most = [], self.cycles
        lines += ["  reg [7:0] age = 0;",
                  f"  always @(posedge clk) age <= age == {most} ? age : age + 1;"]  # fmt: skip
        for (value, width), name in self._pasts.items():
            depth = self._depth[value, width]
            lines += [f"  reg {_range(width)}{name}_{k};" for k in range(1, depth + 1)]
            lines.append("  always @(posedge clk) begin")
            before = value
            for k in range(1, depth + 1):
                lines.append(f"    {name}_{k} <= {before};")
                before = f"{name}_{k}"
            lines.append("  end")
        return lines


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""
