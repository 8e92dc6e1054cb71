"""`Board`: the description of a board, with its platform, pins, tools and limits.

The users are the files in the folder ``boards``, each of which defines boards, and all steps of a
build.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...errors import InputError, WorkFailed
from ...toolchain.public import require_fields
from ...toolchain.values import message_text
from .platforms import with_current_tools, with_slower_clock

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["COMPACT", "ECP5_ROUTERS", "Board", "Limit", "Misfit"]

#: Platform options for families with wide multiplexers. A crossbar made for 4-input LUTs takes more
#: LUTs with wide multiplexers than without.
COMPACT = {"synth_opts": "-nowidelut"}

#: Routers of nextpnr for an ECP5 at a moderate clock, in order of preference. ``router2`` lets
#: wires share a track and then negotiates: it ends even on a device that is 99 % full, where
#: ``router1`` never does. But its wires are longer, so that a fast clock may need ``router1``.
ECP5_ROUTERS = ("router2", "router1")


class Misfit(WorkFailed):
    """Error for a bitstream that does not fit into the device, or misses the board's clock."""


@dataclass(frozen=True)
class Limit:
    """The largest square torus whose bitstream fits onto a board, as recorded in the board's file.

    Only place and route, which takes minutes, can tell for certain whether a bitstream fits and
    reaches the clock. So the result is recorded, for the collective that is asked for most.

    Parameters
    ----------
    side : int
        Nodes in each row and column.
    measured : str
        Name of the board, this one or another with the same device, for which place and route
        succeeded with this side, and failed (or did not end in reasonable time) with the next
        larger one. Empty if the side is an estimate from synthesis.
    collective, algorithm : str
        Name of the collective, and of its algorithm.
    width : int
        Bits of a flit. A message has one flit for each of its chunks.
    """

    side: int
    measured: str = ""
    collective: str = "allgather"
    algorithm: str = "hamiltonian"
    width: int = 8

    @property
    def fabric_text(self) -> str:
        """Description of the largest fabric, such as "4x4 allgather of 8 bits"."""
        return f"{self.side}x{self.side} {self.collective} of {self.width} bits"

    def excludes(self, fabric: "Fabric") -> bool:
        """Return True if it is known that a fabric cannot fit, because a smaller one did not.

        It is known if the limit was measured, by a failure of place and route on the next larger
        square torus, and if the fabric has the same collective and algorithm, at least as many
        nodes and bits of a flit as that torus had, and a flit or more for each chunk of a message.
        """
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
        """Return a clause for a message: the largest fabric that fits, and how this is known.

        Parameters
        ----------
        board : str
            Name of the board that the error is about.
        """
        if not self.measured:
            return f"{self.fabric_text} fits by an estimate"
        device = (
            "" if self.measured == board else f" on {self.measured}, which has the same device,"
        )
        return f"place and route{device} fits up to {self.fabric_text}"

    def source_text(self) -> str:
        """Return the limit as Python code for a board's file; default values are left out."""
        changed = [f for f in fields(self) if getattr(self, f.name) != f.default]
        values = [f"{f.name}={json.dumps(getattr(self, f.name))}" for f in changed]
        return f"Limit({', '.join(values)})"


def _is_file_name(name: str) -> bool:
    """Return True for the name of a file, without folders, that a build may give to its products.

    Names of other files of a build, such as ``report.json``, are excluded.
    """
    return PurePath(name).name == name and name not in ("", ".", "..", "build", "report.json")


#: Resource of a platform for an LED: its name, its number, and for some a subsignal.
Led: TypeAlias = tuple[str, int] | tuple[str, int, str]


@dataclass(frozen=True)
class Board:
    """A board that can carry a fabric behind its bridge.

    Parameters
    ----------
    title : str
        Common name of the board, and its device.
    platform : function of () -> Platform
        Amaranth's description of the board.
    program : tuple of str
        Command that loads the bitstream with the platform's own programmer; it runs in the folder
        of the files.
    products : tuple of str
        Files that the command needs, the bitstream first.
    packer : tuple of str
        Tools that the build runs after yosys, by their names in `torusfabric.toolchain.tools`.
    uart : tuple of (str, int)
        Resource of the serial line: name and number.
    pins : str
        Text for users: the pins of the serial line, if they need an adapter to connect a computer.
    port : str
        Device file of the serial line under Linux, if no other serial device is attached.
    lamps : dict of str to tuple
        LEDs. ``running`` lights during a run, ``done`` after a run. Each is a resource, (name,
        number) or (name, number, subsignal).
    resources : tuple of Resource
        Resources that the platform itself lacks.
    transceivers : tuple of (int, int)
        ECP5: the location of the transceiver at the pins of each resource ``serdes``: the number
        of a dual (a block of two transceivers), and 0 or 1 for the channel in it.
    options : dict of str to str
        Options for the platform's tools.
    routers : tuple of str
        Routers of place and route by the tool's names, in order of preference. The next one runs if
        those before miss the clock. Empty if the tool has one router.
    placers : tuple of str
        Placers, in order of preference. The next one runs, with all routers, if those before fail.
        A placer other than the last is stopped when it is stuck, and after half of the remaining
        time.
    mhz : float, optional
        Clock of the fabric in MHz, if it is slower than the oscillator; ECP5 only.
    limit : Limit, optional
        Largest square torus that fits.
    minutes : float
        Time limit of the tools in a build.
    name, file : str
        Name of the board, and path of its file; set when the file is loaded.
    """

    title: str
    platform: Callable[[], Any]
    program: tuple[str, ...]
    products: tuple[str, ...]
    packer: tuple[str, ...]
    uart: tuple[str, int] = ("uart", 0)
    pins: str = "the board's own USB plug"
    port: str = "/dev/ttyUSB0"
    lamps: dict[Literal["running", "done"], Led] = field(default_factory=dict)
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
        """Check the entries, and raise `InputError` for those that no build can use.

        The function that loads the board's file adds the line of the entry to the message.
        """
        require_fields(self)
        if not all(map(_is_file_name, self.products)) or not self.products:
            names = "names of files beside report.json, the bitstream first"
            raise InputError(
                f"Products of Board must be {names}, not {message_text(self.products)}"
            )
        if not self.program:
            raise InputError("Program of Board must be a command, not none")
        for name, number in (("Mhz", self.mhz), ("Minutes", self.minutes)):
            if number is not None and number <= 0:
                raise InputError(f"{name} of Board must be a positive number, not {number}")

    def make_platform(self) -> Any:
        """Return a new platform of Amaranth for this board; each platform can be built once."""
        platform = with_current_tools(self.platform(), self.name)
        platform.add_resources(self.resources)
        platform.transceivers = self.transceivers
        return with_slower_clock(platform, self.mhz) if self.mhz else platform
