"""A Verilog harness that lets a module be placed and routed alone, whatever its number of ports.

Every input comes from a register of a shift register that one pin fills, and every output goes
into a register, from where three at a time are added, by an exclusive-or, to a bit of another shift
register that ends at a pin. So no path of the harness is longer than those of the module, and
outputs that always agree do not cancel out, as long as they are not side by side: they are delayed
by different numbers of cycles. The clock is thus limited by the module, and by nothing that would
depend on where the pins of a package are. The one thing missing is the length of the wires to its
neighbours. The fewer registers there are around a module, the less they get into its way: its
clock rate is a few per cent better than with a register more for each output.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import WorkFailed

__all__ = ["HARNESS", "Ports", "harness"]

#: Ports of a module: direction, and number of bits.
Ports = Mapping[str, Sequence[Any]]

#: The name of the harness module.
HARNESS = "harness"


def harness(name: str, ports: Ports, *, clock: str = "clk") -> str:
    """The harness of a module.

    Parameters
    ----------
    ports : dict
        Name of a port -> ("input" or "output", number of bits).
    clock : str
        The name of its clock port, if it has one.

    Returns
    -------
    str
        Verilog of a module `HARNESS` with the ports `clk`, `scan` and `pin`.

    Raises
    ------
    WorkFailed
        If a port is neither an input nor an output.
    """
    widths = {"input": 0, "output": 0}
    ties = []
    for port, (direction, bits) in ports.items():
        if port == clock:
            ties.append(f".{port}(clk)")
            continue
        if direction not in widths:
            raise WorkFailed(f"Port {port} of {name} must be an input or output, not {direction}")
        low = widths[direction]
        widths[direction] += bits
        bus = "drive" if direction == "input" else "seen"
        ties.append(f".{port}({bus}[{low + bits - 1}:{low}])")
    shift = _fold(widths["output"])
    drive = f"  reg [{max(widths['input'], 1) - 1}:0] drive;\n"
    return (
        f"module {HARNESS}(input clk, input scan, output pin);\n{drive}"
        "  always @(posedge clk) drive <= {drive, scan};\n"
        f"  wire [{max(widths['output'], 1) - 1}:0] seen;\n"
        f"  {name} dut (\n    " + ",\n    ".join(ties) + f"\n  );\n{shift}endmodule\n"
    )


def _fold(width: int) -> str:
    """Registers that take `seen` in and shift it out to `pin`."""
    if width == 0:
        return "  assign pin = drive[0];\n"
    groups = [f"^taken[{min(low + 2, width - 1)}:{low}]" for low in range(0, width, 3)]
    return (
        f"  reg [{width - 1}:0] taken;\n  reg [{len(groups) - 1}:0] sum;\n"
        "  always @(posedge clk) begin\n    taken <= seen;\n    sum <= (sum >> 1) ^ {\n      "
        + ",\n      ".join(reversed(groups))
        + "\n    };\n  end\n  assign pin = sum[0];\n"
    )
