"""ROMs in synthesis: what contents cost, and routers with the ROMs that drive them.

All ROMs are one module, so that they are mapped by their contents, and many of them in one run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...verilog.design import RomContents
from .harness import Ports

__all__ = ["ROMS_TOP", "WITH_ROMS", "router_with_roms", "roms_text"]

#: The name of the module around all ROMs of a run.
ROMS_TOP = "roms"

#: What the name of a router is followed by, in the module of it and its ROMs.
WITH_ROMS = "_with_roms"


def roms_text(roms: Mapping[str, RomContents], module: str) -> str:
    """A module for each of some contents, and a top that has one of each.

    Parameters
    ----------
    roms : mapping of str to RomContents
        By the names of the modules around them.
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
            f"  {_instance(contents, module, 'rom', 'address', 'data')}endmodule\n"
        )
        low = high + 1
    return "\n".join([*wrappers, *top, "endmodule\n"])


def router_with_roms(
    name: str, ports: Ports, roms: Mapping[str, RomContents], module: str
) -> tuple[str, Ports]:
    """A router and the ROMs that drive inputs of it, as a module.

    Parameters
    ----------
    name : str
        Of the router.
    ports : Ports
        Its own.
    roms : mapping of str to RomContents
        By the inputs that they drive.

    Returns
    -------
    text : str
    ports : Ports
        Those of the module.
    """
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
