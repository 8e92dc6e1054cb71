"""Modules around others: ROMs of a run, a router with its ROMs, and a harness for place and route.

All ROMs are one module, so that they are mapped by their contents, and many of them in one run. A
harness lets a module be placed and routed alone, whatever its number of ports. Every input comes
from a register of a shift register that one pin fills, and every output goes into a register, from
where three at a time are added, by an exclusive-or, to a bit of another shift register that ends at
a pin. So no path of the harness is longer than those of the module, and outputs that always agree
do not cancel out, as long as they are not side by side: they are delayed by different numbers of
cycles. The clock is thus limited by the module, and by nothing that would depend on where the pins
of a package are. The one thing missing is the length of the wires to its neighbours. The fewer
registers there are around a module, the less they get into its way: its clock rate is a few per
cent better than with a register more for each output.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import WorkFailed
from ...verilog.top import RomContents

__all__ = ["HARNESS", "Ports", "ROMS_TOP", "WITH_ROMS", "harness", "roms_text",
           "router_with_roms"]  # fmt: skip

#: Ports of a module: their names -> "input" or "output", and number of bits.
Ports = Mapping[str, Sequence[Any]]

#: The name of the harness module.
HARNESS = "harness"

#: The name of the module around all ROMs of a run.
ROMS_TOP = "roms"

#: What the name of a router is followed by, in the module of it and its ROMs.
WITH_ROMS = "_with_roms"


def harness(name: str, ports: Ports) -> str:
    """The harness of a module: a module `HARNESS` with the ports `clk`, `scan` and `pin`.

    Raises
    ------
    WorkFailed
        If a port is neither an input nor an output.
    """
    widths = {"input": 0, "output": 0}
    ties = []
    for port, (direction, bits) in ports.items():
        if port == "clk":
            ties.append(f".{port}(clk)")
            continue
        if direction not in widths:
            raise WorkFailed(f"Port {port} of {name} must be an input or output, not {direction}")
        low = widths[direction]
        widths[direction] += bits
        bus = "drive" if direction == "input" else "seen"
        ties.append(f".{port}({bus}[{low + bits - 1}:{low}])")
    shift = "  assign pin = drive[0];\n"
    if width := widths["output"]:  # registers take `seen` in and shift it out to `pin`
        groups = [f"^taken[{min(low + 2, width - 1)}:{low}]" for low in range(0, width, 3)]
        shift = (
            f"  reg [{width - 1}:0] taken;\n  reg [{len(groups) - 1}:0] sum;\n"
            "  always @(posedge clk) begin\n    taken <= seen;\n    sum <= (sum >> 1) ^ {\n      "
            + ",\n      ".join(reversed(groups))
            + "\n    };\n  end\n  assign pin = sum[0];\n"
        )
    drive = f"  reg [{max(widths['input'], 1) - 1}:0] drive;\n"
    return (
        f"module {HARNESS}(input clk, input scan, output pin);\n{drive}"
        "  always @(posedge clk) drive <= {drive, scan};\n"
        f"  wire [{max(widths['output'], 1) - 1}:0] seen;\n"
        f"  {name} dut (\n    " + ",\n    ".join(ties) + f"\n  );\n{shift}endmodule\n"
    )


def roms_text(roms: Mapping[str, RomContents], module: str) -> str:
    """A module for each of some contents, by its name, and a top that has one of each."""
    bits = max(contents.address_bits for contents in roms.values())
    width = sum(contents.width for contents in roms.values())
    top = [
        f"module {ROMS_TOP}(input clk, input [{bits - 1}:0] address, output [{width - 1}:0] data);"
    ]
    wrappers, low = [], 0
    for name, contents in roms.items():
        address, high = contents.address_bits - 1, low + contents.width - 1
        pins = f".clk(clk), .address(address[{address}:0]), .data(data[{high}:{low}])"
        top.append(f"  {name} at_{name} ({pins});")
        wrappers.append(
            f"(* keep_hierarchy *)\nmodule {name}(input clk, input [{address}:0] address, "
            f"output [{contents.width - 1}:0] data);\n"
            f"  {_instance(contents, module, 'rom', 'address', 'data')}endmodule\n"
        )
        low = high + 1
    return "\n".join([*wrappers, *top, "endmodule\n"])


def router_with_roms(
    name: str, ports: Ports, roms: Mapping[str, RomContents], module: str
) -> tuple[str, Ports]:
    """A router and the ROMs that drive inputs of it, by these, as a module; and its ports."""
    outer: dict[str, Sequence[Any]] = {port: p for port, p in ports.items() if port not in roms}
    outer |= {f"{port}_address": ("input", rom.address_bits) for port, rom in roms.items()}
    declared = [f"{direction} [{bits - 1}:0] {port}" for port, (direction, bits) in outer.items()]
    body = []
    for port, rom in roms.items():
        body.append(f"  wire [{rom.width - 1}:0] {port};")
        body.append(f"  {_instance(rom, module, f'{port}_rom', f'{port}_address', port)}")
    pins = ", ".join(f".{port}({port})" for port in ports)
    head = f"module {name}{WITH_ROMS}({', '.join(declared)});"
    return "\n".join([head, *body, f"  {name} router ({pins});", "endmodule\n"]), outer


def _instance(contents: RomContents, module: str, name: str, address: str, data: str) -> str:
    """An instance of the ROM module."""
    pins = f".clk(clk), .address({address}), .data({data})"
    return f"{module} #(\n    {contents.parameters()}\n  ) {name} ({pins});\n"
