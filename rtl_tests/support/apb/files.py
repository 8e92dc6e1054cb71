"""Verilog of a fabric behind APB4, and a bench that drives it."""

import json
from dataclasses import replace
from pathlib import Path

from torusfabric.adapters.bus.interface import SOURCES
from torusfabric.contract.interface import BenchAdditions
from torusfabric.verilog import emit
from torusfabric.verilog.design import MANIFEST, make_and_write
from torusfabric.verilog.manifest import bench_files, json_text

__all__ = ["write"]

#: Files of the bench: register accesses as behind any bus, and single accesses in APB4.
FILES = {"fabric_port.py": SOURCES / "bus_port.py",
         "bus.py": Path(__file__).parent / "bench" / "bus.py"}  # fmt: skip


def write(system, choices, folder, *, command, force=False):
    """Write all files into a folder."""

    def make():
        how = {name: choices[name] for name in ("ram", "flow", "templates")}
        design = emit(system.behind_apb, command=command, **how)
        said = json.loads(design.files[MANIFEST])
        said |= {"interface": "apb", "bus": said["bus"] | {"protocol": "apb4", "address_unit": 1}}
        files = bench_files(BenchAdditions(FILES, design.top)) | {MANIFEST: json_text(said)}
        return replace(design, interface="apb", files=design.files | files)

    return make_and_write(make, folder, force=force)
