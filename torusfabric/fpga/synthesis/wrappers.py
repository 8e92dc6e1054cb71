"""Verilog around modules: a harness for place and route, a top of ROMs, and a router with its ROMs.

The user is `Flow`.

The *harness* lets a module be placed and routed alone, whatever its number of ports::

    scan -> shift register -> module -> registers -> XOR of 3 -> shift register -> pin

Each input has a register of the first shift register, and each output goes to a register. Three
such registers at a time are XORed into a bit of the second shift register. So paths of the harness
are shorter than those of the module, and neither the positions of pins nor the number of ports
limit the clock. Equal outputs do not cancel each other unless they are neighbours, because the
second shift register delays them by different numbers of cycles. The harness lacks the wires to
neighbours of the module. It has few registers because more of them get in the way of the module:
one more register for each output costs a few per cent of the clock rate.

All ROMs of one run of yosys are instances in one top, each in a module of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import WorkFailed
from ...verilog.top import RomContents

__all__ = ["HARNESS", "Ports", "ROMS_TOP", "WITH_ROMS", "harness_text", "roms_text",
           "router_with_roms"]  # fmt: skip

#: Port -> direction ("input" or "output"), and number of bits.
Ports = Mapping[str, Sequence[Any]]

#: Name of the harness module.
HARNESS = "harness"

#: Name of the top of all ROMs of a run.
ROMS_TOP = "roms"

#: End of the name of a module with a router and its ROMs.
WITH_ROMS = "_with_roms"


def harness_text(name: str, ports: Ports) -> str:
    """Return the Verilog of a harness, by which a module with many ports needs few pins.

    The harness is a module `HARNESS` with the ports `clk`, `scan` and `pin`. A shift register
    behind `scan` drives the inputs of the module, and another one collects its outputs for `pin`.

    Parameters
    ----------
    name : str
        Name of the module.
    ports : dict of str to (str, int)
        Port of the module -> direction, ``input`` or ``output``, and number of bits.

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
    if width := widths["output"]:  # register `seen`, and shift its sums out to `pin`
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
    """Return Verilog for one run of yosys that maps several ROMs.

    For each ROM it has a module, which holds one instance of the general ROM module with the
    contents of this ROM. A top has an instance of each of these modules.

    Parameters
    ----------
    roms : dict of str to RomContents
        Name of the contents, which becomes the name of a module -> contents of the ROM.
    module : str
        Name of the general ROM module.
    """
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
            f"  {_rom_instance(contents, module, 'rom', 'address', 'data')}endmodule\n"
        )
        low = high + 1
    return "\n".join([*wrappers, *top, "endmodule\n"])


def router_with_roms(
    name: str, ports: Ports, roms: Mapping[str, RomContents], module: str
) -> tuple[str, Ports]:
    """Return the Verilog of a module with a router and the ROMs that drive its inputs.

    Parameters
    ----------
    name : str
        Name of the router's module.
    ports : dict of str to (str, int)
        Direction and width of each port of the router.
    roms : dict of str to RomContents
        Input of the router -> contents of the ROM that drives it.
    module : str
        Name of the ROM module.

    Returns
    -------
    text : str
        The Verilog.
    ports : dict of str to (str, int)
        Direction and width of each port of the new module. It has an address in place of each
        input that a ROM drives.
    """
    outer: dict[str, Sequence[Any]] = {port: p for port, p in ports.items() if port not in roms}
    outer |= {f"{port}_address": ("input", rom.address_bits) for port, rom in roms.items()}
    declared = [f"{direction} [{bits - 1}:0] {port}" for port, (direction, bits) in outer.items()]
    body = []
    for port, rom in roms.items():
        body.append(f"  wire [{rom.width - 1}:0] {port};")
        body.append(f"  {_rom_instance(rom, module, f'{port}_rom', f'{port}_address', port)}")
    pins = ", ".join(f".{port}({port})" for port in ports)
    head = f"module {name}{WITH_ROMS}({', '.join(declared)});"
    return "\n".join([head, *body, f"  {name} router ({pins});", "endmodule\n"]), outer


def _rom_instance(contents: RomContents, module: str, name: str, address: str, data: str) -> str:
    """Return the Verilog of an instance of the general ROM module with certain contents.

    The contents are parameters of the instance. `module` is the name of the ROM module and `name`
    that of the instance; `address` and `data` are the nets at its ports.
    """
    pins = f".clk(clk), .address({address}), .data({data})"
    return f"{module} #(\n    {contents.instance_parameters()}\n  ) {name} ({pins});\n"
