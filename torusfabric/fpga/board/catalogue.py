"""What there is to know of a board."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...errors import InputError, WorkFailed
from ...toolchain.public import require_fields
from ...toolchain.values import shown
from .platforms import slower, up_to_date

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["COMPACT", "ECP5_ROUTERS", "Board", "Limit", "Misfit"]

#: Options of the platform for families with wide multiplexers, which cost more tables than they
#: save in a crossbar made for tables of four inputs.
COMPACT = {"synth_opts": "-nowidelut"}

#: The routers of nextpnr for an ECP5 at a moderate clock. The second one, first in line here, lets
#: wires share a track and then negotiates: it comes to an end on a device that is 99 % full, where
#: the first one goes round and round. But its wires are longer, so that a fast clock may take the
#: first one.
ECP5_ROUTERS = ("router2", "router1")


class Misfit(WorkFailed):
    """Place and route found no room on the device, or did not reach the clock of the board."""


@dataclass(frozen=True)
class Limit:
    """The largest square torus whose bitstream fits onto a board, as its file records it.

    That is known for certain only when place and route has found room for all of it and the clock
    is reached, which takes minutes: so it is kept, for the collective that people ask for first.

    Parameters
    ----------
    side : int
        Nodes in a row and in a column.
    measured : str
        The board on which place and route made this one fit, and for the next one found no room or
        no end in a time that anybody would wait: the board's own name, or another one's with the
        same device. Empty if it is an estimate, from what synthesis alone counts.
    width : int
        Bits of a flit; a message has one flit for each of its chunks.
    """

    side: int
    measured: str = ""
    collective: str = "allgather"
    algorithm: str = "hamiltonian"
    width: int = 8

    @property
    def fabric(self) -> str:
        """The fabric that fits, in words."""
        return f"{self.side}x{self.side} {self.collective} of {self.width} bits"

    def excludes(self, fabric: "Fabric") -> bool:
        """Whether a fabric is at least as large as the first that was measured not to fit."""
        sides = getattr(fabric.program.topology, "sides", ())
        return (
            bool(self.measured)
            and len(sides) == 2
            and fabric.nodes >= (self.side + 1) ** 2
            and fabric.width >= self.width
            and any(
                schedule.collective.kind == self.collective
                and schedule.algorithm == self.algorithm
                and fabric.flits >= schedule.chunks
                for schedule in (form.schedule for form in fabric.program.forms)
            )
        )

    def describe(self, board: str) -> str:
        """One clause of an error about a board: what fits, and whether that was measured."""
        if not self.measured:
            return f"{self.fabric} fits by an estimate"
        device = (
            "" if self.measured == board else f" on {self.measured}, which has the same device,"
        )
        return f"place and route{device} fits up to {self.fabric}"

    def entry(self) -> str:
        """The text of the limit in a board's file; default values are left out."""
        changed = [f for f in fields(self) if getattr(self, f.name) != f.default]
        values = [f"{f.name}={json.dumps(getattr(self, f.name))}" for f in changed]
        return f"Limit({', '.join(values)})"


def _is_file_name(name: str) -> bool:
    """True for the name of a file in the folder of a build that nothing else there has."""
    return PurePath(name).name == name and name not in ("", ".", "..", "build", "report.json")


#: A resource of a platform: its name, its number and perhaps the name of a part.
Lamp: TypeAlias = tuple[str, int] | tuple[str, int, str]


@dataclass(frozen=True)
class Board:
    """A board that can carry a fabric behind its bridge.

    Parameters
    ----------
    title : str
        What people call it, and its device.
    platform : function of () -> Platform
        Amaranth's description of it.
    program : tuple of str
        The command that loads the bitstream, by the platform's own programmer; it runs in the
        folder of the files.
    products : tuple of str
        The files that it needs, the bitstream first.
    uart : tuple of (str, int)
        The resource of the serial line.
    pins : str
        Where the serial line is, if it takes an adapter.
    port : str
        What Linux calls it, where nothing else is attached.
    lamps : dict of str to tuple
        The resource, (name, number) or (name, number, subsignal), that shows each of ``running``
        and ``done``: whether a run is under way, or has come to its end.
    resources : tuple of Resource
        Resources that the platform itself does not have.
    transceivers : tuple of (int, int)
        Of an ECP5, the dual and the channel in which the pins of each resource ``serdes`` end.
    options : dict of str to str
        For the platform's tools.
    packer : tuple of str
        The tools that the build runs after yosys, by the names of `torusfabric.toolchain.tools`.
    routers : tuple of str
        The routers of place and route, by its own names: each is tried if those before it did not
        reach the clock. Empty where there is no choice.
    placers : tuple of str
        Its placers: each is tried, with all routers, if those before it came to no end. All but
        the last are left when they are stuck, and after half of the time that is left.
    mhz : float, optional
        The clock of the fabric, where that is slower than the oscillator of an ECP5.
    limit : Limit, optional
        The largest square torus that fits, and how that is known.
    minutes : float
        How long the tools may work at a build.
    name, file : str
        The key of the board in its file, and that; set when the file is loaded.
    """

    title: str
    platform: Callable[[], Any]
    program: tuple[str, ...]
    products: tuple[str, ...]
    packer: tuple[str, ...]
    uart: tuple[str, int] = ("uart", 0)
    pins: str = "the board's own USB plug"
    port: str = "/dev/ttyUSB0"
    lamps: dict[Literal["running", "done"], Lamp] = field(default_factory=dict)
    resources: tuple[Any, ...] = ()
    transceivers: tuple[tuple[Literal[0, 1], Literal[0, 1]], ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    routers: tuple[str, ...] = ()
    placers: tuple[str, ...] = ()
    mhz: float | None = None
    limit: Limit | None = None
    minutes: float = 60
    name: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        """Refuse entries that no build can use: whoever loads a file adds the line."""
        require_fields(self)
        if not all(map(_is_file_name, self.products)) or not self.products:
            names = "names of files beside report.json, the bitstream first"
            raise InputError(f"Products of Board must be {names}, not {shown(self.products)}")
        if not self.program:
            raise InputError("Program of Board must be a command, not none")
        for name, number in (("Mhz", self.mhz), ("Minutes", self.minutes)):
            if number is not None and number <= 0:
                raise InputError(f"{name} of Board must be a positive number, not {number}")

    def make_platform(self) -> Any:
        """A new platform, which can be built once."""
        platform = up_to_date(self.platform(), self.name)
        platform.add_resources(self.resources)
        platform.transceivers = self.transceivers
        return slower(platform, self.mhz) if self.mhz else platform
