"""IP-XACT (IEEE 1685-2009, as Vivado packages IP): a component with its ports and interfaces."""

import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from ..design import TEXT
from .clocks import clocks_of, resets_of

__all__ = ["COMPONENT", "component"]

#: The file that it becomes.
COMPONENT = "component.xml"

#: The namespace of IEEE 1685-2009.
SPIRIT = "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009"

#: Vendor, library, name, version; the abstraction has `_rtl` behind the name.
BusType = tuple[str, str, str, str]

CLOCK: BusType = ("xilinx.com", "signal", "clock", "1.0")
RESET: BusType = ("xilinx.com", "signal", "reset", "1.0")
INTERRUPT: BusType = ("xilinx.com", "signal", "interrupt", "1.0")

#: Of each protocol of ports that make an interface.
BUSES: Mapping[str, BusType] = {
    "axi4-stream": ("xilinx.com", "interface", "axis", "1.0"),
    "axi4-lite": ("xilinx.com", "interface", "aximm", "1.0"),
    "axi4": ("xilinx.com", "interface", "aximm", "1.0"),
    "wishbone-b4": ("opencores.org", "interface", "wishbone", "b4"),
}

#: What a memory-mapped protocol of AXI is called there.
AXI = {"axi4-lite": "AXI4LITE", "axi4": "AXI4"}

#: What an access is called there.
ACCESS = {
    "read": "read-only",
    "write": "write-only",
    "read-write": "read-write",
    "write-1-to-clear": "read-write",
}

#: What a write does, where it is no plain one.
MODIFIED = {"write-1-to-clear": "oneToClear"}


def component(manifest: Mapping[str, Any], title: str) -> str:
    """The component of a fabric.

    Parameters
    ----------
    manifest : mapping
        Of the fabric.
    title : str
        What it is, in a line.

    Returns
    -------
    str
        In XML.
    """
    ET.register_namespace("spirit", SPIRIT)
    root = ET.Element(_tag("component"))
    _identify(root, ("torusfabric", "fabric", manifest["top"], "1.0"))
    interfaces = _add(root, "busInterfaces")
    buses = _buses(manifest["ports"])
    for name, ports in buses.items():
        _add_bus(interfaces, name, ports)
    _add_signals(interfaces, manifest, buses)
    if "bus" in manifest:
        _add_memory_maps(_add(root, "memoryMaps"), buses, manifest["bus"])
    _add_model(root, manifest)
    files = _add(_add(root, "fileSets"), "fileSet")
    _add(files, "name", "verilog")
    file = _add(files, "file")
    _add(file, "name", TEXT)
    _add(file, "fileType", "verilogSource")
    _add(root, "description", title)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _tag(name: str) -> str:
    return f"{{{SPIRIT}}}{name}"


def _add(parent: ET.Element, name: str, text: object = None, /, **attributes: str) -> ET.Element:
    """An element more, with a text if there is one."""
    found = ET.SubElement(parent, _tag(name), {_tag(k): v for k, v in attributes.items()})
    found.text = None if text is None else str(text)
    return found


def _identify(parent: ET.Element, names: BusType) -> None:
    """Vendor, library, name and version of a component."""
    for key, value in zip(("vendor", "library", "name", "version"), names, strict=True):
        _add(parent, key, value)


def _buses(ports: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """The ports of each interface, by its name, that of its ports up to what they are there."""
    found: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for name, port in ports.items():
        if port["protocol"] == "wishbone-b4":
            found["wb"][name] = port
        elif port["protocol"] in BUSES:
            found[name.rpartition("_")[0]][name] = port
    return dict(found)


def _add_interface(parent: ET.Element, name: str, bus: BusType, *, side: str) -> ET.Element:
    """An interface, up to its side."""
    found = _add(parent, "busInterface")
    _add(found, "name", name)
    vendor, library, kind, version = bus
    keys = {"vendor": vendor, "library": library, "version": version}
    _add(found, "busType", **keys, name=kind)
    _add(found, "abstractionType", **keys, name=f"{kind}_rtl")
    _add(found, side)
    return found


def _map_ports(interface: ET.Element, pairs: Iterable[tuple[str, str]]) -> None:
    """Which port is what of the interface."""
    maps = _add(interface, "portMaps")
    for logical, physical in pairs:
        pair = _add(maps, "portMap")
        _add(_add(pair, "logicalPort"), "name", logical)
        _add(_add(pair, "physicalPort"), "name", physical)


def _parameters(interface: ET.Element, values: Mapping[str, object]) -> None:
    found = _add(interface, "parameters")
    for key, value in values.items():
        parameter = _add(found, "parameter")
        _add(parameter, "name", key)
        _add(parameter, "value", value)


def _add_bus(parent: ET.Element, name: str, ports: Mapping[str, Mapping[str, Any]]) -> None:
    """An interface of a bus or a stream; who sends, or asks, is the master."""
    protocol = next(iter(ports.values()))["protocol"]
    side = "master" if name.startswith("m_") else "slave"
    found = _add_interface(parent, name, BUSES[protocol], side=side)
    if protocol != "axi4-stream":
        (element,) = found.findall(_tag(side))
        _add(element, "memoryMapRef", memoryMapRef=name)
    logical = {port: port.removeprefix(f"{name}_").upper() for port in ports}
    _map_ports(found, ((there, port) for port, there in logical.items()))
    if protocol == "axi4-stream":
        widths = {there: ports[port]["width"] for port, there in logical.items()}
        _parameters(found, {
            "TDATA_NUM_BYTES": widths["TDATA"] // 8,
            "TDEST_WIDTH": widths.get("TDEST", 0),
            "TID_WIDTH": widths.get("TID", 0),
            "TUSER_WIDTH": 0,
            "HAS_TREADY": 1,
            "HAS_TSTRB": 0,
            "HAS_TKEEP": int("TKEEP" in widths),
            "HAS_TLAST": int("TLAST" in widths),
        })  # fmt: skip
    elif protocol in AXI:
        _parameters(found, {
            "PROTOCOL": AXI[protocol],
            "DATA_WIDTH": ports[f"{name}_wdata"]["width"],
            "ADDR_WIDTH": ports[f"{name}_awaddr"]["width"],
        })  # fmt: skip


def _add_signals(
    parent: ET.Element,
    manifest: Mapping[str, Any],
    buses: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> None:
    """Interfaces of clocks, resets and interrupts."""
    ports = manifest["ports"]
    for clock, reset in zip(clocks_of(manifest), resets_of(manifest), strict=True):
        found = _add_interface(parent, clock, CLOCK, side="slave")
        _map_ports(found, [("CLK", clock)])
        clocked = [name for name, each in buses.items()
                   if next(iter(each.values()))["clock"] == clock]  # fmt: skip
        busif = {"ASSOCIATED_BUSIF": ":".join(clocked)} if clocked else {}
        _parameters(found, busif | {"ASSOCIATED_RESET": reset})
        found = _add_interface(parent, reset, RESET, side="slave")
        _map_ports(found, [("RST", reset)])
        _parameters(found, {"POLARITY": "ACTIVE_HIGH"})
    for name, port in ports.items():
        if port["role"] == "interrupt":
            found = _add_interface(parent, name, INTERRUPT, side="master")
            _map_ports(found, [("INTERRUPT", name)])
            _parameters(found, {"SENSITIVITY": "LEVEL_HIGH"})


def _add_memory_maps(
    parent: ET.Element, buses: Mapping[str, Mapping[str, Any]], bus: Mapping[str, Any]
) -> None:
    """What each bus has of registers, and of windows onto the memories of nodes."""
    for name, ports in buses.items():
        bursts = next(iter(ports.values()))["protocol"] == "axi4"
        found = _add(parent, "memoryMap")
        _add(found, "name", name)
        if not bursts:
            _add_registers(found, bus)
        for window, each in bus["windows"].items():
            # Where bursts have a port of their own, images are loaded beside the registers.
            if len(buses) == 1 or bursts == (window != "load"):
                _add_window(found, window, each, bus["beat_width" if bursts else "data_width"])
        _add(found, "addressUnitBits", 8)


def _add_registers(parent: ET.Element, bus: Mapping[str, Any]) -> None:
    """A block of registers."""
    width = bus["data_width"]
    windows = sorted(window["offset"] for window in bus["windows"].values())
    block = _add_block(parent, "registers", 0, min([*windows, bus["size"]]), width, "register")
    for register, each in bus["registers"].items():
        entry = _add(block, "register")
        _add(entry, "name", register)
        _add(entry, "description", each["meaning"])
        _add(entry, "addressOffset", f"{each['offset']:#x}")
        _add(entry, "size", width)
        _add(entry, "access", ACCESS[each["access"]])
        for field, bits in each["fields"].items():
            part = _add(entry, "field")
            _add(part, "name", field)
            _add(part, "description", bits["meaning"])
            _add(part, "bitOffset", bits["low"])
            _add(part, "bitWidth", bits["width"])
            if each["access"] in MODIFIED:
                _add(part, "modifiedWriteValue", MODIFIED[each["access"]])


def _add_window(parent: ET.Element, name: str, window: Mapping[str, Any], width: int) -> None:
    """A block of words that are written, or read."""
    size = window["stride"] * window["nodes"]
    block = _add_block(parent, name, window["offset"], size, width, "memory")
    _add(block, "access", ACCESS[window["access"]])


def _add_block(
    parent: ET.Element, name: str, offset: int, size: int, width: int, usage: str
) -> ET.Element:
    """A block of addresses."""
    found = _add(parent, "addressBlock")
    _add(found, "name", name)
    _add(found, "baseAddress", f"{offset:#x}")
    _add(found, "range", f"{size:#x}")
    _add(found, "width", width)
    _add(found, "usage", usage)
    return found


def _add_model(root: ET.Element, manifest: Mapping[str, Any]) -> None:
    """The views of the component, and its ports."""
    model = _add(root, "model")
    views = _add(model, "views")
    for name in ("synthesis", "simulation"):
        view = _add(views, "view")
        _add(view, "name", f"xilinx_anylanguage{name}")
        _add(view, "envIdentifier", f":vivado.xilinx.com:{name}")
        _add(view, "language", "verilog")
        _add(view, "modelName", manifest["top"])
        _add(_add(view, "fileSetRef"), "localName", "verilog")
    ports = _add(model, "ports")
    for name, port in manifest["ports"].items():
        found = _add(ports, "port")
        _add(found, "name", name)
        _add(found, "description", port["meaning"])
        wire = _add(found, "wire")
        _add(wire, "direction", {"input": "in", "output": "out"}[port["direction"]])
        if port["width"] > 1:
            vector = _add(wire, "vector")
            _add(vector, "left", port["width"] - 1)
            _add(vector, "right", 0)
