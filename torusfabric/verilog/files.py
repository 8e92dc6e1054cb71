"""All files beside the text of the modules: the manifest, a bench, pages, and those of flows."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..rtl.bus import Bus
from ..rtl.fabric import Fabric, Top
from .design import MANIFEST, TEXT
from .diagram import Diagram
from .flows import Flow, flow_files
from .flows.regions import HINTS, cells_of_nodes, nextpnr_regions
from .manifest import ADDRESS_MAP, manifest
from .pages import BUS_PAGE, CORE_PAGE, bus_page, core_page, docs_files
from .system_rdl import SYSTEM_RDL, system_rdl
from .templates import template_files

__all__ = ["BENCH", "as_json", "bench_files", "files_beside"]

#: Where the files are here, and in the folder of an export.
SOURCE, BENCH = Path(__file__).parent / "bench" / "files", "bench"

#: What makes a bench; it names the top, and the Verilog beside the bench.
MAKEFILE = f"{BENCH}/Makefile"

#: What all benches have.
COMMON = ("Makefile", "collectives.py", "runs.py", "stalls.py", "test_fabric.py")

#: What drives streams behind a bus, beside what drives either.
REGISTERS = {"command_registers.py": "command_registers.py"}

#: What drives each interface.
PORTS = {
    "host": {"fabric_port.py": "ports/host.py", "direct_port.py": "direct_port.py"},
    "stream": {
        "test_fabric.py": "test_streams.py",
        "stream_port.py": "stream_port.py",
        "packets.py": "../packets.py",
    },
    "memories": {"fabric_port.py": "ports/memories.py", "direct_port.py": "direct_port.py"},
    "streams": {"fabric_port.py": "ports/streams.py", "direct_port.py": "direct_port.py"},
    "wishbone": {"fabric_port.py": "bus_port.py", "bus.py": "ports/wishbone.py"},
    "axi-lite": {"fabric_port.py": "bus_port.py", "bus.py": "ports/axi_lite.py"},
    "axi4": {
        "fabric_port.py": "ports/axi4.py",
        "bus_port.py": "bus_port.py",
        "bus.py": "ports/axi_lite.py",
    },
}


def files_beside(  # noqa: PLR0913 (one choice of a user each)
    fabric: Fabric,
    modules: Sequence[str],
    *,
    command: str,
    title: str,
    diagrams: Sequence[Diagram] | None = None,
    flow: Flow | None = None,
    templates: bool = False,
    fold: bool = False,
    compact: bool = False,
) -> dict[str, str]:
    """The texts of all files but that of the modules, by their names.

    Parameters
    ----------
    modules : sequence of str
        The names of all modules.
    command : str
        The command that makes them.
    title : str
        What the fabric is, in a line.
    diagrams, flow, templates, fold, compact
        As of `torusfabric.verilog.emit`.
    """
    said = manifest(fabric, command=command, files=[], modules=modules)
    texts = _describing(fabric, said, title) | bench_files(_bench(fabric), said["top"])
    if diagrams is not None:
        texts |= docs_files(said, diagrams)
    topology = fabric.program.topology
    if flow is not None:
        texts |= flow_files(flow, said, title, netlist=fabric.netlist, topology=topology)
    if templates:
        texts |= template_files(said)
    if fold:
        cells = cells_of_nodes(fabric.netlist)
        if compact:
            cells = {node: [f"node[{node}]"] for node in cells}
        texts[HINTS] = nextpnr_regions(topology, cells)
    return texts | {MANIFEST: as_json(said | {"files": [TEXT, *texts]})}


def _describing(fabric: Fabric, said: dict[str, Any], title: str) -> dict[str, str]:
    """The files that describe the interface, given the manifest."""
    if fabric.register_map:
        rdl = system_rdl(fabric.register_map, said["top"], title)
        return {SYSTEM_RDL: rdl, BUS_PAGE: bus_page(said)}
    if fabric.top is Top.CORE:
        addresses = json.dumps(fabric.address_map()) + "\n"  # long: on one line
        return {ADDRESS_MAP: addresses, CORE_PAGE: core_page(said)}
    return {}


def bench_files(own: Mapping[str, str], top: str, *more: str) -> dict[str, str]:
    """The texts of the files of a bench.

    Parameters
    ----------
    own : dict of str to str
        Where the text of each file is that other benches have not, by its name.
    top : str
        The module that is driven.
    *more : str
        Files with Verilog, in the folder of the bench.
    """
    sources = sorted((dict(zip(COMMON, COMMON, strict=True)) | dict(own)).items())
    texts = {f"{BENCH}/{name}": (SOURCE / source).read_text("utf-8") for name, source in sources}
    every = f"$(abspath {' '.join([f'../{TEXT}', *more])})"
    texts[MAKEFILE] = texts[MAKEFILE].format(top=top, sources=every)
    return texts


def _bench(fabric: Fabric) -> dict[str, str]:
    """The files of its bench that not all have, as of `bench_files`: of a bus, streams, or both."""
    of_streams = fabric.top is Top.STREAM
    if fabric.bus:
        # The registers behind AXI4 are driven as those behind AXI4-Lite.
        of_words = Bus.AXI_LITE if of_streams and fabric.bus is Bus.AXI4 else fabric.bus
        return PORTS[of_words.value] | (PORTS["stream"] | REGISTERS if of_streams else {})
    if fabric.top is Top.CORE:
        return PORTS["streams" if fabric.streaming else "memories"]
    return PORTS[fabric.top.value]


def as_json(value: object) -> str:
    """A value as the text of a file."""
    return json.dumps(value, indent=2) + "\n"
