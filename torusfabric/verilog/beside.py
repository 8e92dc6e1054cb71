"""The files beside the text: the manifest, what describes the interface, and the bench."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..rtl.bus import Bus
from ..rtl.fabric import Fabric, Top
from .design import MANIFEST, TEXT
from .diagram import Diagram
from .flows import Flow, flow_files, flow_names
from .flows.regions import HINTS, cells_of_nodes, nextpnr_regions
from .manifest import ADDRESS_MAP, as_json, manifest
from .pages import BUS_PAGE, CORE_PAGE, bus_page, core_page, docs_files, docs_names
from .system_rdl import SYSTEM_RDL, system_rdl
from .templates import INSTANCE, SVA, template_files

__all__ = ["files_beside"]

#: Where the files are here, and in the folder of an export.
SOURCE, FOLDER = Path(__file__).parent / "bench" / "files", "bench"

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
    "wishbone": {"fabric_port.py": "ports/wishbone.py", "bus_port.py": "bus_port.py"},
    "axi-lite": {"fabric_port.py": "ports/axi_lite.py", "bus_port.py": "bus_port.py"},
    "axi4": {
        "fabric_port.py": "ports/axi4.py",
        "axi_lite.py": "ports/axi_lite.py",
        "bus_port.py": "bus_port.py",
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
    diagrams : sequence of Diagram, optional
        If they are given, there is a page about the ports with them.
    flow : Flow, optional
        The vendor's tools for which there are a project, constraints and IP-XACT.
    templates : bool
        Whether there is an instance to be copied, and assertions to be bound.
    fold : bool
        Whether there are regions for nextpnr.
    compact : bool
        Whether nodes are the members of a generate loop.
    """
    names = [TEXT, *_describing(fabric), *_bench_names(_bench(fabric))]
    names += [] if diagrams is None else docs_names(diagrams)
    names += [] if flow is None else flow_names(flow)
    names += [INSTANCE, SVA] if templates else []
    names += [HINTS] if fold else []
    said = manifest(fabric, command=command, files=names, modules=modules)
    texts = _bench_files(_bench(fabric), said["top"])
    if fabric.register_map:
        texts[SYSTEM_RDL] = system_rdl(fabric.register_map, said["top"], title)
        texts[BUS_PAGE] = bus_page(said)
    elif fabric.top is Top.CORE:
        texts[ADDRESS_MAP] = json.dumps(fabric.address_map()) + "\n"  # long: on one line
        texts[CORE_PAGE] = core_page(said)
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
    return {name: texts[name] for name in names[1:]} | {MANIFEST: as_json(said)}


def _describing(fabric: Fabric) -> list[str]:
    """The files that describe the interface."""
    if fabric.bus:
        return [SYSTEM_RDL, BUS_PAGE]
    return [ADDRESS_MAP, CORE_PAGE] if fabric.top is Top.CORE else []


def _bench(fabric: Fabric) -> str:
    """What the bench drives; joined by a plus where it is streams and a bus."""
    if fabric.bus and fabric.top is Top.STREAM:
        registers = Bus.AXI_LITE if fabric.bus is Bus.AXI4 else fabric.bus
        return f"{registers}+{fabric.top}"
    if fabric.top is Top.CORE:
        return "streams" if fabric.streaming else "memories"
    return str(fabric.bus or fabric.top)


def _bench_names(interface: str) -> list[str]:
    """The files of the bench of a bus, or of what else a fabric is driven by."""
    return [f"{FOLDER}/{name}" for name in sorted(_sources(interface))]


def _bench_files(interface: str, top: str) -> dict[str, str]:
    """The texts of the bench of an interface, given the name of the top module."""
    texts = {
        f"{FOLDER}/{name}": SOURCE.joinpath(source).read_text(encoding="utf-8")
        for name, source in _sources(interface).items()
    }
    makefile = f"{FOLDER}/Makefile"
    return texts | {makefile: texts[makefile].replace("{top}", top)}


def _sources(interface: str) -> Mapping[str, str]:
    """Where the text of each file is, by its name."""
    bus, _, stream = interface.partition("+")
    both = PORTS[stream] | REGISTERS if stream else {}
    return dict(zip(COMMON, COMMON, strict=True)) | PORTS[bus] | both
