"""IP-XACT (IEEE 1685-2009, as Vivado packages IP): a component with its ports and interfaces."""

import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ...toolchain.quoting import visible
from ..design import TEXT

__all__ = ["COMPONENT", "component", "having"]

#: The file that it becomes.
COMPONENT = "component.xml"

#: The namespace of IEEE 1685-2009.
SPIRIT = "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009"

#: Vendor, library, name, version; the abstraction has `_rtl` behind the name.
BusType = tuple[str, str, str, str]

#: The ports of each interface, by its name, that of its ports up to what they are there.
Buses = Mapping[str, Mapping[str, Mapping[str, Any]]]

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

#: What a direction, and an access, are called there.
DIRECTION = {"input": "in", "output": "out"}
ACCESS = {
    "read": "read-only",
    "write": "write-only",
    "read-write": "read-write",
    "write-1-to-clear": "read-write",
}

#: What a write does, where it is no plain one.
MODIFIED = {"write-1-to-clear": "oneToClear"}


def component(manifest: Mapping[str, Any], title: str) -> str:
    """The component of a fabric, in XML."""
    ET.register_namespace("spirit", SPIRIT)
    buses = _buses(manifest["ports"])
    file = _element("file", name=TEXT, fileType="verilogSource")
    files = _element("fileSets", _element("fileSet", file, name="verilog"))
    inside = [_element("busInterfaces", *_of_buses(buses), *_of_signals(manifest, buses))]
    if "bus" in manifest:
        inside.append(_element("memoryMaps", *_memory_maps(buses, manifest["bus"])))
    root = _element(
        "component", *inside, _model(manifest), files, _leaf("description", visible(title)),
        vendor="torusfabric", library="fabric", name=manifest["top"], version="1.0",
    )  # fmt: skip
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def having(manifest: Mapping[str, Any], role: str) -> list[str]:
    """The ports of a role in their order: clocks, that of the fabric first, or their resets."""
    return [name for name, port in manifest["ports"].items() if port["role"] == role]


def _element(tag: str, /, *inside: ET.Element, **leaves: object) -> ET.Element:
    """An element: a text for each of its leaves, and what else is inside behind them."""
    found = ET.Element(f"{{{SPIRIT}}}{tag}")
    found.extend([*(_leaf(each, text) for each, text in leaves.items()), *inside])
    return found


def _leaf(tag: str, text: object) -> ET.Element:
    """An element with a text."""
    found = _element(tag)
    found.text = str(text)
    return found


def _reference(tag: str, **attributes: str) -> ET.Element:
    """An element that has nothing but attributes."""
    found = _element(tag)
    found.attrib.update({f"{{{SPIRIT}}}{key}": value for key, value in attributes.items()})
    return found


def _buses(ports: Mapping[str, Mapping[str, Any]]) -> Buses:
    """The ports of each interface."""
    found: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for name, port in ports.items():
        if port["protocol"] in BUSES:
            wishbone = port["protocol"] == "wishbone-b4"
            found["wb" if wishbone else name.rpartition("_")[0]][name] = port
    return found


def _interface(
    name: str,
    bus: BusType,
    side: ET.Element,
    pins: Mapping[str, str],
    parameters: Mapping[str, object],
) -> ET.Element:
    """An interface: what each of its pins is there, and the parameters, if it has any."""
    vendor, library, kind, version = bus
    keys = {"vendor": vendor, "library": library, "version": version}
    maps = (
        _element("portMap", _element("logicalPort", name=logical),
                 _element("physicalPort", name=physical))
        for physical, logical in pins.items()
    )  # fmt: skip
    said = [_element("parameter", name=key, value=value) for key, value in parameters.items()]
    return _element(
        "busInterface",
        _reference("busType", **keys, name=kind),
        _reference("abstractionType", **keys, name=f"{kind}_rtl"),
        side,
        _element("portMaps", *maps),
        *([_element("parameters", *said)] if said else []),
        name=name,
    )


def _of_buses(buses: Buses) -> Iterator[ET.Element]:
    """The interfaces of buses and streams; who sends, or asks, is the master."""
    for name, ports in buses.items():
        protocol = next(iter(ports.values()))["protocol"]
        side = _element("master" if name.startswith("m_") else "slave")
        pins = {port: port.removeprefix(f"{name}_").upper() for port in ports}
        parameters: dict[str, object] = {}
        if protocol == "axi4-stream":
            widths = {there: ports[port]["width"] for port, there in pins.items()}
            parameters = {
                "TDATA_NUM_BYTES": widths["TDATA"] // 8,
                "TDEST_WIDTH": widths.get("TDEST", 0),
                "TID_WIDTH": widths.get("TID", 0),
                "TUSER_WIDTH": 0,
                "HAS_TREADY": 1,
                "HAS_TSTRB": 0,
                "HAS_TKEEP": int("TKEEP" in widths),
                "HAS_TLAST": int("TLAST" in widths),
            }
        else:
            side.append(_reference("memoryMapRef", memoryMapRef=name))
        if protocol in AXI:
            parameters = {
                "PROTOCOL": AXI[protocol],
                "DATA_WIDTH": ports[f"{name}_wdata"]["width"],
                "ADDR_WIDTH": ports[f"{name}_awaddr"]["width"],
            }
        yield _interface(name, BUSES[protocol], side, pins, parameters)


def _of_signals(manifest: Mapping[str, Any], buses: Buses) -> Iterator[ET.Element]:
    """Interfaces of clocks, resets and interrupts."""
    for clock, reset in zip(having(manifest, "clock"), having(manifest, "reset"), strict=True):
        clocked = [name for name, each in buses.items()
                   if next(iter(each.values()))["clock"] == clock]  # fmt: skip
        parameters = {"ASSOCIATED_BUSIF": ":".join(clocked)} if clocked else {}
        parameters["ASSOCIATED_RESET"] = reset
        yield _interface(clock, CLOCK, _element("slave"), {clock: "CLK"}, parameters)
        active = {"POLARITY": "ACTIVE_HIGH"}
        yield _interface(reset, RESET, _element("slave"), {reset: "RST"}, active)
    for name in having(manifest, "interrupt"):
        level = {"SENSITIVITY": "LEVEL_HIGH"}
        yield _interface(name, INTERRUPT, _element("master"), {name: "INTERRUPT"}, level)


def _memory_maps(buses: Buses, bus: Mapping[str, Any]) -> Iterator[ET.Element]:
    """What each bus has of registers, and of windows onto the memories of nodes."""
    for name, ports in buses.items():
        bursts = next(iter(ports.values()))["protocol"] == "axi4"
        blocks = [] if bursts else [_registers(bus)]
        # Where bursts have a port of their own, images are loaded beside the registers.
        blocks += [
            _block(
                window, each["offset"], each["stride"] * each["nodes"],
                bus["beat_width" if bursts else "data_width"],
                usage="memory", access=ACCESS[each["access"]],
            )
            for window, each in bus["windows"].items()
            if len(buses) == 1 or bursts == (window != "load")
        ]  # fmt: skip
        yield _element("memoryMap", *blocks, _leaf("addressUnitBits", 8), name=name)


def _registers(bus: Mapping[str, Any]) -> ET.Element:
    """A block of registers."""
    width = bus["data_width"]
    size = min([*(window["offset"] for window in bus["windows"].values()), bus["size"]])
    found = _block("registers", 0, size, width, usage="register")
    for register, each in bus["registers"].items():
        access = each["access"]
        modified = {"modifiedWriteValue": MODIFIED[access]} if access in MODIFIED else {}
        fields = (
            _element("field", name=field, description=bits["meaning"], bitOffset=bits["low"],
                     bitWidth=bits["width"], **modified)
            for field, bits in each["fields"].items()
        )  # fmt: skip
        found.append(_element(
            "register", *fields, name=register, description=each["meaning"],
            addressOffset=f"{each['offset']:#x}", size=width, access=ACCESS[access],
        ))  # fmt: skip
    return found


def _block(name: str, offset: int, size: int, width: int, **leaves: str) -> ET.Element:
    """A block of addresses."""
    return _element("addressBlock", name=name, baseAddress=f"{offset:#x}", range=f"{size:#x}",
                    width=width, **leaves)  # fmt: skip


def _model(manifest: Mapping[str, Any]) -> ET.Element:
    """The views of the component, and its ports."""
    views = (
        _element(
            "view", _element("fileSetRef", localName="verilog"),
            name=f"xilinx_anylanguage{name}", envIdentifier=f":vivado.xilinx.com:{name}",
            language="verilog", modelName=manifest["top"],
        )
        for name in ("synthesis", "simulation")
    )  # fmt: skip
    ports = []
    for name, port in manifest["ports"].items():
        vector = [_element("vector", left=port["width"] - 1, right=0)] * (port["width"] > 1)
        wire = _element("wire", *vector, direction=DIRECTION[port["direction"]])
        ports.append(_element("port", wire, name=name, description=port["meaning"]))
    return _element("model", _element("views", *views), _element("ports", *ports))
