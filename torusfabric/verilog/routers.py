"""What a report of synthesis has to know of the routers of a fabric, by their modules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..rtl.arrays import Array, Role, Slice
from ..rtl.fabric import Fabric
from ..rtl.netlist import Netlist
from ..rtl.router import Router
from .top import RomContents

__all__ = ["RouterClass", "RouterShape", "router_classes"]

#: Out-ports of a router, and its inputs that bring data with the part of a report they begin.
OUTPORTS = ("tx",)
INPORTS = {"rx": "crossbar", "inject": "injection"}


@dataclass(frozen=True)
class RouterShape:
    """The outer form of a router, whatever it selects.

    Parameters
    ----------
    own_words : int
        Words that are chosen among beside those of in-ports: of memories, sums, and those of the
        registers behind in-ports; at least one.
    settings : int
        Rows of the ROM of its settings; 0 where its select registers are given from outside.
    """

    ports: int
    own_words: int
    width: int
    settings: int


@dataclass(frozen=True)
class RouterClass:
    """Nodes with the same router.

    Parameters
    ----------
    nodes : int
        How many.
    outports : tuple of str
        The output ports that drive links. Where given, the report has the cost of each out-port
        bit; other outputs (delivery to the node) are not counted as such.
    inports : dict of str to str
        Input port that brings data -> part of the report for the tables that read it first. Where
        given, the report shows where the tables go.
    shape : RouterShape, optional
        Its outer form. Where given, the report compares it with a full crossbar.
    settings : dict of str to dict
        Input port -> {contents of the ROMs that drive it: number of nodes}; only inputs that ROMs
        drive.
    """

    nodes: int
    outports: tuple[str, ...] = ()
    inports: Mapping[str, str] = field(default_factory=dict)
    shape: RouterShape | None = None
    settings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def router_classes(fabric: Fabric, contents: Mapping[str, RomContents]) -> dict[str, RouterClass]:
    """The class of each router module of a fabric, given the contents of ROMs by their names."""
    netlist = fabric.netlist
    routers = [array for array in netlist.arrays if array.role is Role.ROUTER]
    roms = _contents_of_nets(netlist, {value: name for name, value in contents.items()})
    read = {part.net for array in routers for part in array.inputs.get("setting", ())
            if isinstance(part, Slice)}  # fmt: skip
    names = {name for net in read & roms.keys() for name in roms[net].values()}
    rows = max((len(contents[name].rows) for name in names), default=0)
    return {
        fabric.prefix + array.module: RouterClass(
            nodes=len(array),
            outports=OUTPORTS,
            # One that only forwards injects nothing.
            inports={port: part for port, part in INPORTS.items() if port in array.inputs},
            # Of the ROM in front of it; without one the sequencer gives the select bits.
            shape=_shape(fabric, array, rows if "setting" in array.inputs else 0),
            settings=dict(_settings(array, roms)),
        )
        for array in routers
    }


def _contents_of_nets(
    netlist: Netlist, names: Mapping[RomContents, str]
) -> dict[str, dict[int, str]]:
    """The name of what each ROM holds, by the net that it drives and the number in its name."""
    found: dict[str, dict[int, str]] = defaultdict(dict)
    for array in netlist.arrays:
        if array.which is not None:
            each = [names[RomContents(rows, array.width)] for rows in array.contents]
            net, _ = array.outputs["data"]
            for k, number in zip(array.index.tolist(), array.which.tolist(), strict=True):
                found[net][k] = each[number]
    return found


def _settings(
    router: Array, roms: Mapping[str, Mapping[int, str]]
) -> Iterator[tuple[str, dict[str, int]]]:
    """The inputs that ROMs drive, and how often each of their contents does."""
    for port, parts in router.inputs.items():
        nets = {part.net for part in parts if isinstance(part, Slice)} & roms.keys()
        if nets:
            each = (roms[net][k] for net in nets for k in router.index.tolist())
            yield port, dict(Counter(each))


def _shape(fabric: Fabric, array: Array, settings: int) -> RouterShape:
    """The outer form of a router."""
    ports, router = array.outputs["tx"][1] // fabric.width, fabric.netlist.modules[array.module]()
    assert isinstance(router, Router), "a router"
    own = {word for output in router.crossbar.outputs for word in output.words if word >= ports}
    return RouterShape(ports, max(1, len(own)), fabric.width, settings)
