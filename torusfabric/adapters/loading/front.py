"""The front of a loaded fabric: a core with a host port or streams, its tables and the loader."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...contract.cut import Cut
from ...contract.interface import Interface
from ...rtl.front import Built, Front
from ..host.finders import host_layouts
from ..streams.options import Clocks
from ..streams.run_port import add_run_port
from .hardware import SHOWN, Loading
from .interface import LoadedHost, LoadedHostProofs, LoadedStreams
from .loader import IMAGE, IMAGE_BITS, WORDS
from .requests import choices_by_command, choices_of
from .streams import LoadedStreamTop

__all__ = ["LoadedFront"]


class LoadedFront(Front):
    """A core with loaded tables, and a host port or streams.

    Parameters
    ----------
    tables : Loading
        The tables; their room decides between a host port and streams.
    for_bus : bool
        True if a bus stands in front. A host port then has an input that ends a run early; streams
        get a run port in place of those of commands and statuses.
    clocks : Clocks
        Clocks of the streams of nodes.
    timeout : int
        With streams, cycles after which a node that delays the others is reported; 0 for never.
    cut : Cut, optional
        The nodes to build, if the fabric is split over several devices.
    closed_by : str
        Prefix of the nets `start` and `busy` that close the host port to writes.
    """

    agreed = MappingProxyType({IMAGE: IMAGE_BITS})

    tables: Loading

    def __init__(
        self,
        tables: Loading,
        *,
        for_bus: bool = False,
        clocks: Clocks = Clocks.ONE,
        timeout: int = 0,
        cut: Cut | None = None,
        closed_by: str = "",
    ) -> None:
        program, streams = tables.program, tables.room.streams
        # The layouts of streams count flits, those of a host port words.
        beat = 1 if streams else tables.room.beat
        words = program.topology.nodes * -(-program.flits // beat)
        layouts = host_layouts(program, words, beat)
        core = tables.make_core(resets=for_bus and cut is None, cut=cut)
        super().__init__(core, layouts)
        self.top, self.tables = "stream" if streams else "host", tables
        self.windows = () if streams else tables.host_layouts()
        self._clocks, self._timeout, self._for_bus = clocks, timeout, for_bus
        self._closed_by = closed_by

    def part(self, cut: Cut, *, for_bus: bool, closed_by: str) -> LoadedFront:
        """Return the front of the nodes of a cut, which is loaded with the images of the whole."""
        return LoadedFront(self.tables, for_bus=for_bus, cut=cut, closed_by=closed_by)

    @property
    def choices(self) -> Mapping[str, int]:
        """Inputs that are sampled with a start, with their bits."""
        return choices_of(self.tables.room).inputs

    @property
    def longest_run(self) -> int:
        """Upper bound of the clock edges of a run, for every image that fits."""
        return self.tables.room.longest_run

    @property
    def digest(self) -> int:
        """A 32-bit digest of the room and the width, by which images are matched to fabrics."""
        return self.tables.room.digest(self.core.width)

    def add(self) -> Built:
        """Fill the netlist of the core, and return the routers, interface and read latency."""
        core, tables, for_bus = self.core, self.tables, self._for_bus
        build, latency = core.build, 0
        if tables.room.streams:
            top = LoadedStreamTop(tables, core, self._clocks, self._timeout, has_run_port=for_bus)
            routers = top.add()
        else:
            routers, latency = tables.add_host(core, self._closed_by)
        for name in SHOWN:
            build.add_output(name, build.nets[name])
        if tables.room.streams and for_bus:
            add_run_port(build, choices_by_command(tables.room), (*WORDS, *SHOWN))
        return Built(routers, self._interface(latency), latency)

    def _interface(self, read_latency: int) -> Interface:
        """Return the declarations of the ports."""
        core, layouts, for_bus = self.core, self.layouts, self._for_bus
        if self.tables.room.streams:
            clocks = self._clocks, core.beat
            facts = self.tables, core.program, core.width, *clocks
            return LoadedStreams(*facts, has_run_port=for_bus)
        if for_bus:
            return LoadedHostProofs(self.tables)
        of_modes = [layouts[mode.first] for mode in core.program.modes]
        latencies = {"read_latency": read_latency, "write_latency": self.write_latency}
        return LoadedHost(self.tables, of_modes, latencies)
