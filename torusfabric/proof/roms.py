"""What ROMs show: a cycle later, the row of their contents that is at their address."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from .gate_program import GateProgram
from .gates import TO_GATES, GateText, RomParameters, as_module, converted
from .report import refuted

if TYPE_CHECKING:
    from ..toolchain.cache import Cache
    from ..verilog.design import Design

__all__ = ["check_roms"]

SCRIPT = (
    """\
read_verilog text.v
hierarchy -check -top roms
proc
"""
    + TO_GATES
)

#: ROMs that are converted at once.
BATCH = 64


def check_roms(text: GateText, design: Design, cache: Cache | None = None) -> int:
    """Check, and count, the rows of all different ROMs; past the end it is the last row."""
    different = dict.fromkeys(i.rom for i in text.instances.values() if i.rom is not None)
    count, left = 0, iter(different)
    while batch := list(islice(left, BATCH)):
        verilog = design.modules[design.rom] + "\n".join(_side_by_side(batch, design.rom))
        module = as_module("roms", converted(SCRIPT, verilog, cache)["modules"]["roms"])
        for number, rom in enumerate(batch):
            # Compare what a ROM shows with its contents.
            program = GateProgram(module, {f"d{number}": [*range(rom.width)]})
            address = np.arange(1 << rom.address)
            bits = (address[None] >> np.arange(rom.address)[:, None] & 1).astype(np.int32)
            state = program.unknown(len(address))
            live = program.inputs[f"a{number}"]
            now = program.after(program.values(state, {f"a{number}": bits[live]}), state)
            shown = program.outputs_of(program.values(now, {}), f"d{number}")
            wanted = rom.table.T
            if (shown != wanted).any():
                at = int(np.nonzero((shown != wanted).any(axis=0))[0][0])
                message = f"A ROM of {rom.depth} rows must show row {at}, not something else"
                raise refuted("rom", "data", message)
            count += 1 << rom.address
    return count


def _side_by_side(batch: list[RomParameters], module: str) -> Iterator[str]:
    """A module with some ROMs."""
    ports = [f"a{k}, d{k}" for k in range(len(batch))]
    yield f"module roms(clk, {', '.join(ports)});\n  input clk;"
    for k, rom in enumerate(batch):
        yield f"  input [{rom.address - 1}:0] a{k};\n  output [{rom.width - 1}:0] d{k};"
        bits = rom.depth * rom.width
        yield (
            f"  {module} #(.DEPTH({rom.depth}), .WIDTH({rom.width}), .ADDRESS({rom.address}), "
            f".CONTENTS({bits}'h{rom.contents:x})) r{k} (.clk(clk), .address(a{k}), .data(d{k}));"
        )
    yield "endmodule\n"
