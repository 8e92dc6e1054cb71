"""A Verilog harness that lets a module be placed and routed alone, whatever its number of ports.

Every input comes from a register of a shift register that one pin fills, and every output goes
into a register; the outputs are then folded to one pin by exclusive-ors of four, a register after
each, so that no path of the harness is longer than those of the module. The clock is thus limited
by the module, and by nothing that would depend on where the pins of a package are. The one thing
missing is the length of the wires to its neighbours.
"""

from ..errors import WorkFailed

__all__ = ["HARNESS", "harness"]

#: The name of the harness module.
HARNESS = "harness"


def harness(name, ports, *, clock="clk"):
    """The harness of a module.

    Parameters
    ----------
    name : str
        The module.
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
    stages = _fold(widths["output"])
    drive = f"  reg [{max(widths['input'], 1) - 1}:0] drive;\n"
    return (
        f"module {HARNESS}(input clk, input scan, output pin);\n{drive}"
        "  always @(posedge clk) drive <= {drive, scan};\n"
        f"  wire [{max(widths['output'], 1) - 1}:0] seen;\n"
        f"  {name} dut (\n    " + ",\n    ".join(ties) + f"\n  );\n{stages}endmodule\n"
    )


def _fold(width):
    """Registers that take `seen` in and fold it to `pin`."""
    if width == 0:
        return "  assign pin = drive[0];\n"
    lines = [f"  reg [{width - 1}:0] fold_0;\n  always @(posedge clk) fold_0 <= seen;\n"]
    stage = 0
    while width > 1:
        groups = [f"^fold_{stage}[{min(low + 3, width - 1)}:{low}]" for low in range(0, width, 4)]
        stage += 1
        width = len(groups)
        lines.append(
            f"  reg [{width - 1}:0] fold_{stage};\n"
            f"  always @(posedge clk) fold_{stage} <= {{\n    "
            + ",\n    ".join(reversed(groups))
            + "\n  };\n"
        )
    return "".join(lines) + f"  assign pin = fold_{stage}[0];\n"
