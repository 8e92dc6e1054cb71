"""`HostFront`: a core whose nodes share one memory port, the hardware of the top ``host``.

The host port translates an address into node, memory and address within the memory. The translated
access (a read or a write of one word) goes to all nodes, through registers that each serve some
nodes, so that wires stay short. The word of the addressed node returns through a tree of OR gates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from ...program.timing import SETTING, WRITE
from ...rtl.arrays import NodeGroups
from ...rtl.core import Core
from ...rtl.core.memory_port import SharedPort, write_enable_numbers
from ...rtl.core.run_port import RunPort
from ...rtl.flit_rows import AUTO, choose_beat
from ...rtl.front import Front, FrontFacts
from ...rtl.netlist import Role, add_single_instance
from ...rtl.run_choices import RunChoices
from .finders import ENTRY_CYCLES, host_layouts, sent_finders
from .interface import HostInterface, HostProofs
from .port import add_host
from .requests import Requests

if TYPE_CHECKING:
    from ...contract.interface import Interface
    from ...contract.node_block import NodeBlock
    from ...program import Program

#: Net of each member of the run port, where the names of net and member differ.
RUN_PORT_NETS = {
    "start": "accepted",
    "reset": "reset_run",
    "idle_address": "read_address",
    "last_entry": "run_form",
    "last_root": "sampled_root",
}

__all__ = ["HostFront"]


#: Cycles that a write may take without any delay of a run that is started one edge later, beyond
#: the `WRITE` cycles of a write whose address needs no look-up. Why more than 0: the first read of
#: a run happens `SETTING` cycles after its begin.
EARLY_START = SETTING + 1 - WRITE


class HostFront(Front):
    """The hardware of a fabric with the top ``host``: a core whose memories are behind a host port.

    Parameters
    ----------
    program : Program
        The program that the core executes.
    width : int
        Bits of a flit.
    beat : int or "auto"
        Number of flits in one word of the host port.
    for_bus : bool
        True if the port is driven by a bus adapter. The fabric then has an input `reset_run`, which
        ends a run early.
    cut : NodeBlock, optional
        The nodes to build, for one board of several; by default all nodes.
    closed_by : str
        Prefix of the names of two nets, ``<prefix>start`` and ``<prefix>busy``. The host port
        ignores writes while one of them is high. On several boards they come from the control of
        the board, because the core itself is started later, together with those of other boards.
    """

    top = "host"

    def __init__(
        self,
        program: Program,
        width: int,
        beat: int | str = AUTO,
        *,
        for_bus: bool = False,
        cut: NodeBlock | None = None,
        closed_by: str = "",
    ) -> None:
        beat, program = choose_beat(program, width, beat)
        program = program.arrange_messages(shared=False)
        nodes = len(cut.built_nodes) if cut else program.topology.nodes
        numbers = range(1 + max(form.layout for form in program.forms))
        of_layout = [form.layout for form in program.forms].index
        words = [program.part(of_layout(number)).send_words for number in numbers]
        layouts = host_layouts(program, beat=beat)
        # The send maps of different forms need different numbers of cycles. The slowest decides.
        self._write_cycles = max(finder.latency for finder in sent_finders(program, layouts))
        core = Core(
            program,
            width,
            beat=beat,
            nodes=cut.built_nodes if cut else None,
            # With several boards no hold is needed: a run begins some cycles after the start that
            # closes the port to writes.
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
                place_bits=NodeGroups(nodes).position_bits,
                enables=write_enable_numbers(words),
            ),
        )
        core.build.cut = cut
        super().__init__(core, layouts)
        # Addresses are the same in all forms of a mode.
        self.windows = tuple(self.layouts[mode.first] for mode in program.modes)
        self._for_bus, self._closed_by = for_bus, closed_by

    def front_of_part(self, cut: NodeBlock, *, for_bus: bool, closed_by: str) -> HostFront:
        """Return the hardware for the nodes of one board, with the same program, width and beat.

        `cut` is the block of nodes on the board. `for_bus` and `closed_by` are parameters of
        `HostFront`.
        """
        core = self.core
        return HostFront(
            core.program, core.width, core.beat, for_bus=for_bus, cut=cut, closed_by=closed_by
        )

    def _hold_cycles(self, program: Program) -> int:
        """Return the cycles that a run must wait if it is started right after a write.

        With a start n cycles after the write, the wait is n - 1 cycles shorter. Why: the look-up of
        the address of a write may take so long that the run would read the word before it is
        written. `program` decides the look-up.
        """
        setup = min(form.timing.run_setup for form in program.forms)
        return max(self._write_cycles - ENTRY_CYCLES - EARLY_START - setup, 0)

    @property
    @override
    def write_latency(self) -> int:
        """Clock edges from a write at the host port until the word is in the memory of a node."""
        return WRITE + self._write_cycles - ENTRY_CYCLES

    def add_hardware(self) -> FrontFacts:
        """Add the check of starts (`Requests`), host port, core and read tree to the netlist."""
        core = self.core
        build, program, port = core.build, core.program, core.run_port
        choices = RunChoices.from_program(program)
        for name, bits in {"start": 1, **choices.sampled_inputs}.items():
            build.add_input(name, bits)
        if port.resets:
            build.add_input("reset_run")
        add_single_instance(build, "requests", Role.SEQUENCER, lambda: Requests(program))
        latency, finders = add_host(build, self.layouts, self._closed_by)
        routers = core.add_modules(RUN_PORT_NETS)
        for name in ("busy", "done", "cycles", "error", "round"):
            if name in build.nets:
                build.add_output(name, build.nets[name])
        return FrontFacts(routers, self.make_interface(latency), latency, finders)

    def make_interface(self, read_latency: int) -> Interface:
        """Return the declarations of the host port, whose reads take `read_latency` clock edges.

        Behind a bus, the bus declares the ports, and the result has only the declarations for the
        proof.
        """
        if self._for_bus:
            return HostProofs()
        latencies = {"read_latency": read_latency, "write_latency": self.write_latency}
        return HostInterface(self.windows, latencies)
