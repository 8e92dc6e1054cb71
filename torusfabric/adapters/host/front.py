"""The hardware of a host port: a core whose nodes share one memory port.

The host port finds node, memory and address of a word. Its requests reach all nodes by registers
for groups of nodes; the word of the node that is asked comes back by a tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from ...program.timing import SETTING, WRITE
from ...rtl.arrays import NodeGroups
from ...rtl.core import Core
from ...rtl.core.memory_port import SharedPort, enable_numbers
from ...rtl.core.run_port import RunPort
from ...rtl.flit_rows import AUTO, chosen_beat
from ...rtl.front import Built, Front
from ...rtl.netlist import Role, add_single
from ...rtl.run_choices import RunChoices
from .finders import ENTRY, host_layouts, sent_finders
from .interface import HostInterface, HostProofs
from .port import add_host
from .requests import Requests

if TYPE_CHECKING:
    from ...contract.cut import Cut
    from ...contract.interface import Interface
    from ...program import Program

#: Nets of the run port whose names are not those of its members.
NETS = {
    "start": "accepted",
    "reset": "reset_run",
    "idle_address": "read_address",
    "last_entry": "run_form",
    "last_root": "sampled_root",
}

__all__ = ["HostFront"]


#: Cycles by which a write of the host may be late, for the first read comes as late: a run may
#: begin an edge after the last write.
EARLY_START = SETTING + 1 - WRITE


class HostFront(Front):
    """A core with a host port.

    Parameters
    ----------
    beat : int or "auto"
        Flits of a word of the host port.
    for_bus : bool
        True if a bus stands before the port; then an input of the core ends a run early.
    cut : Cut, optional
        The nodes that are built, if they are not all.
    closed_by : str
        Prefix of the nets `start` and `busy` that close the port to writes.
    """

    top = "host"

    def __init__(
        self,
        program: Program,
        width: int,
        beat: int | str = AUTO,
        *,
        for_bus: bool = False,
        cut: Cut | None = None,
        closed_by: str = "",
    ) -> None:
        beat, program = chosen_beat(program, width, beat)
        nodes = len(cut.here) if cut else program.topology.nodes
        numbers = range(1 + max(form.layout for form in program.forms))
        of_layout = [form.layout for form in program.forms].index
        words = [program.part(of_layout(number)).send_words for number in numbers]
        layouts = host_layouts(program, beat=beat)
        # Of the words that are written, those arrive last whose address takes the longest.
        self._write_cycles = max(finder.latency for finder in sent_finders(program, layouts))
        core = Core(
            program,
            width,
            beat=beat,
            nodes=cut.here if cut else None,
            # A part begins later anyway, after a start that closes the port.
            run_port=RunPort(
                program,
                lead=0,
                hold=0 if cut else self._hold_cycles(program),
                resets=for_bus and cut is None,
            ),
            memory_port=SharedPort(
                program.memories,
                int(program.depth.max()),
                beat * width,
                nodes=nodes,
                place_bits=NodeGroups(nodes).place_bits,
                enables=enable_numbers(words),
            ),
        )
        core.build.cut = cut
        super().__init__(core, layouts)
        # Addresses are the same in all forms of a mode.
        self.windows = tuple(self.layouts[mode.first] for mode in program.modes)
        self._for_bus, self._closed_by = for_bus, closed_by

    def part(self, cut: Cut, *, for_bus: bool, closed_by: str) -> HostFront:
        """Return the front of some of the nodes."""
        core = self.core
        return HostFront(
            core.program, core.width, core.beat, for_bus=for_bus, cut=cut, closed_by=closed_by
        )

    def _hold_cycles(self, program: Program) -> int:
        """Return the cycles by which a run begins later that is started right after a write.

        It begins a cycle less late for each cycle between.
        """
        setup = min(form.timing.run_setup for form in program.forms)
        return max(self._write_cycles - ENTRY - EARLY_START - setup, 0)

    @property
    @override
    def write_latency(self) -> int:
        """Clock edges from a write at the host port to the memory, that of the memory included."""
        return WRITE + self._write_cycles - ENTRY

    def add(self) -> Built:
        """Fill the netlist of the core."""
        core = self.core
        build, program, port = core.build, core.program, core.run_port
        choices = RunChoices.of(program)
        for name, bits in {"start": 1, **choices.inputs}.items():
            build.add_input(name, bits)
        if port.resets:
            build.add_input("reset_run")
        add_single(build, "requests", Role.SEQUENCER, lambda: Requests(program))
        latency, finders = add_host(build, self.layouts, self._closed_by)
        routers = core.add(NETS)
        for name in ("busy", "done", "cycles", "error", "round"):
            if name in build.nets:
                build.add_output(name, build.nets[name])
        return Built(routers, self.interface(latency), latency, finders)

    def interface(self, read_latency: int) -> Interface:
        """Return the declarations of the port; a bus before it declares its own."""
        if self._for_bus:
            return HostProofs()
        latencies = {"read_latency": read_latency, "write_latency": self.write_latency}
        return HostInterface(self.windows, latencies)
