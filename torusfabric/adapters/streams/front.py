"""`StreamFront`: the front of the top ``stream``, a core with two engines at every node.

A front is the hardware around a core, with the ports that users see. The two engines of a node are
its loader, which takes packets from the user and writes them into memories, and its unloader, which
sends received words as packets to the user. The *watch* reports a node for which others wait.
"""

from __future__ import annotations

from ...program import Program
from ...program.spread import spread_injections
from ...rtl.core import Core
from ...rtl.core.run_port import RunPort
from ...rtl.flit_rows import AUTO, divide_by_beats
from ...rtl.front import Front, FrontFacts
from ...toolchain.values import parse_non_negative_int
from ..host.finders import host_layouts
from .hardware import LEAD_CYCLES, StreamTop
from .interface import StreamInterface
from .options import Clocks
from .ports import needs_commands
from .run_port import add_run_port, run_choices
from .sections import choose_sections, least_beat

__all__ = ["StreamFront"]


class StreamFront(Front):
    """The hardware of a fabric with the top ``stream``: a core, and two streams at every node.

    Parameters
    ----------
    program : Program
        The program that the core executes.
    width : int
        Bits of a flit.
    beat : int or "auto"
        Flits of a word of the node streams; ``auto`` is the smallest with which streams do not
        limit the runs.
    clocks : Clocks
        Clocks of the node streams.
    timeout : int
        Cycles after which the watch names a node for which others wait; 0 for no watch.
    for_bus : bool
        True if a run port, driven by a bus adapter, replaces the command and status streams.
    """

    top = "stream"

    def __init__(
        self,
        program: Program,
        width: int,
        beat: int | str = AUTO,
        *,
        clocks: Clocks = Clocks.ONE,
        timeout: int = 0,
        for_bus: bool = False,
    ) -> None:
        if isinstance(beat, str) and beat == AUTO:
            beat, program = least_beat(program, width)
        else:
            beat = parse_non_negative_int("Beat", beat)
            program = divide_by_beats(program, width, beat)
        program = program.arrange_messages(shared=True)
        # Up to R readers share the memories of words that nodes send.
        program = spread_injections(program, most=beat)
        sections = choose_sections(program, beat).n_sections
        core = Core(
            program,
            width,
            beat=beat,
            sections=sections,
            concurrent=True,
            run_port=RunPort(program, sections=sections, lead=LEAD_CYCLES, resets=False),
        )
        # Layouts count flits, not beats: no port of this front has addresses.
        super().__init__(core, host_layouts(program))
        self._clocks, self._timeout, self._for_bus = clocks, timeout, for_bus

    def add_hardware(self) -> FrontFacts:
        """Add the core to the netlist, and the modules for streams around it."""
        core, program = self.core, self.core.program
        routers = StreamTop(core, self._clocks, self._timeout).add_modules()
        if self._for_bus and needs_commands(program):
            add_run_port(core.build, run_choices(program))
        interface = StreamInterface(
            program, core.width, self._clocks, core.beat, has_run_port=self._for_bus
        )
        return FrontFacts(routers, interface)
