"""`LoadedFront`: the front of a loaded fabric, with either a host port or streams.

A front is the hardware around a core, with the ports that users see. A *loaded* fabric has tables
in RAMs, which the *loader* fills with the words of an image. A *room* is the capacity of such a
fabric: the limits of all programs that can be loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...contract.interface import Interface
from ...contract.node_block import NodeBlock
from ...rtl.front import Front, FrontFacts
from ..host.finders import host_layouts
from ..streams.options import Clocks
from ..streams.run_port import add_run_port
from .hardware import STATE_OUTPUTS, Loading
from .interface import LoadedHostInterface, LoadedHostProofs, LoadedStreamInterface
from .loader import IMAGE_BITS, IMAGE_OUTPUT, LOAD_INPUTS
from .requests import command_choices, start_choices
from .streams import LoadedStreamTop

__all__ = ["LoadedFront"]


class LoadedFront(Front):
    """The hardware of a loaded fabric: core, loaded tables, loader, and a host port or streams.

    Parameters
    ----------
    tables : Loading
        The tables, whose capacity says if the fabric has a host port or streams.
    for_bus : bool
        True if the front is behind a bus. With a host port the fabric then has an input that ends a
        run early. With streams it has a run port instead of the streams of commands and statuses.
    clocks : Clocks
        Clocks of the streams of nodes.
    timeout : int
        With streams, cycles after which a node that delays the others is reported; 0 for never.
    cut : NodeBlock, optional
        The nodes to build, for one board of several; by default all nodes.
    closed_by : str
        Prefix of the names of two nets, `start` and `busy`. While one of them is high, writes at
        the host port are ignored; see `HostFront`.
    """

    agreed = MappingProxyType({IMAGE_OUTPUT: IMAGE_BITS})

    tables: Loading

    def __init__(
        self,
        tables: Loading,
        *,
        for_bus: bool = False,
        clocks: Clocks = Clocks.ONE,
        timeout: int = 0,
        cut: NodeBlock | None = None,
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

    def front_of_part(self, cut: NodeBlock, *, for_bus: bool, closed_by: str) -> LoadedFront:
        """Return the hardware for the nodes of one board, of several that form the fabric together.

        The loader of the board takes images of the whole fabric. `cut` is the block of nodes on the
        board. `for_bus` is True if the board has a bus. While one of the nets `start` and `busy`,
        with the prefix `closed_by`, is high, writes at the host port are ignored.
        """
        return LoadedFront(self.tables, for_bus=for_bus, cut=cut, closed_by=closed_by)

    @property
    def sampled_inputs(self) -> Mapping[str, int]:
        """The inputs that are sampled when a run starts, such as ``mode``, with their bits."""
        return start_choices(self.tables.room).sampled_inputs

    @property
    def longest_run(self) -> int:
        """Upper bound of the clock cycles of a run, for every image that fits."""
        return self.tables.room.longest_run

    @property
    def digest(self) -> int:
        """The 32-bit digest of the capacity of the loaded tables and of the width of flits.

        The loader compares it with the digest in an image, and refuses images for other fabrics.
        """
        return self.tables.room.digest(self.core.width)

    def add_hardware(self) -> FrontFacts:
        """Add the core, its tables, the loader and the ports to the netlist."""
        core, tables, for_bus = self.core, self.tables, self._for_bus
        build, latency = core.build, 0
        if tables.room.streams:
            top = LoadedStreamTop(tables, core, self._clocks, self._timeout, has_run_port=for_bus)
            routers = top.add_modules()
        else:
            routers, latency = tables.add_host(core, self._closed_by)
        for name in STATE_OUTPUTS:
            build.add_output(name, build.nets[name])
        if tables.room.streams and for_bus:
            add_run_port(build, command_choices(tables.room), (*LOAD_INPUTS, *STATE_OUTPUTS))
        return FrontFacts(routers, self._make_interface(latency), latency)

    def _make_interface(self, read_latency: int) -> Interface:
        """Return the declarations of the ports, for the manifest, the test bench and the proof.

        `read_latency` is the number of clock edges from a read address of the host port to its
        data.
        """
        core, layouts, for_bus = self.core, self.layouts, self._for_bus
        if self.tables.room.streams:
            clocks = self._clocks, core.beat
            facts = self.tables, core.program, core.width, *clocks
            return LoadedStreamInterface(*facts, has_run_port=for_bus)
        if for_bus:
            return LoadedHostProofs(self.tables)
        of_modes = [layouts[mode.first] for mode in core.program.modes]
        latencies = {"read_latency": read_latency, "write_latency": self.write_latency}
        return LoadedHostInterface(self.tables, of_modes, latencies)
