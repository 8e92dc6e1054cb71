"""The image: fabric, tester, console, reporter and serial line, put together."""

import json

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from ... import __version__
from ...errors import InputError
from ...rtl.assembly import Assembly
from .console import Console
from .reporter import Reporter, Template
from .tester import PATIENCE, HostPort, Tester
from .uart import UartReceiver, UartTransmitter

__all__ = ["SelfTest", "facts_of", "self_test"]

#: Names of the numbers, as they are in the lines.
RUN, CYCLES, NODE, PLACE, EXPECTED, GOT, WORD = (
    "run",
    "cycles",
    "node",
    "place",
    "expected",
    "got",
    "word",
)


def facts_of(fabric):
    """What a fabric is, as plain data: what the board answers when asked."""
    schedule, layout = fabric.program.schedule, fabric.layout
    operator = fabric.program.operator if schedule.collective.reducing else None
    return {
        "torusfabric": __version__,
        "topology": str(schedule.topology),
        "collective": schedule.collective.kind,
        "root": schedule.collective.root,
        **({"operator": operator.name, "signed": operator.signed} if operator else {}),
        "algorithm": schedule.algorithm,
        "schedule_digest": schedule.digest[:16],
        "nodes": fabric.nodes,
        "width": fabric.width,
        "flits": fabric.flits,
        "send_base": layout.send_base,
        "send_words": layout.send_words,
        "recv_base": layout.recv_base,
        "recv_words": layout.recv_words,
        "predicted_cycles": fabric.cycles,
    }


def template_of(fabric):
    """The lines that the image says."""
    inputs = fabric.netlist.inputs
    numbers = {
        RUN: 16,
        CYCLES: (fabric.cycles + PATIENCE).bit_length(),
        NODE: inputs["host_node"],
        PLACE: inputs["host_addr"],
        EXPECTED: fabric.width,
        GOT: fabric.width,
        WORD: fabric.width,
    }
    cycles = f"cycles={{{CYCLES}}} predicted={fabric.cycles:x}"
    where = f"node={{{NODE}}} place={{{PLACE}}} expected={{{EXPECTED}}} got={{{GOT}}}"
    lines = {
        "info": json.dumps(facts_of(fabric), separators=(",", ":")),
        "help": "commands: HEX n node, HEX p place, HEX w write, HEX r read, s start, HEX t test, "
        "q result, i info",
        "pass": f"pass run={{{RUN}}} {cycles}",
        "wrong": f"fail run={{{RUN}}} {cycles} {where}",
        "late": f"late run={{{RUN}}} {cycles}",
        "done": f"done {cycles}",
        "word": f"{{{WORD}}}",
    }
    return Template(lines, numbers)


class SelfTest(wiring.Component):
    """A fabric that tests itself: once at power-up, and whenever it is told to.

    Parameters
    ----------
    fabric : Fabric
        With a host port.
    divisor : int
        Clock cycles a bit of the serial line.

    Members
    -------
    rx : In(1)
    tx : Out(1)
        The serial line.
    running, passed, failed : Out(1)
        For lamps: whether a collective or a test is under way, and the result of the last test.
    """

    def __init__(self, fabric, divisor):
        self._fabric, self._divisor = fabric, divisor
        self._template = template_of(fabric)
        self._tester = Tester(fabric)
        super().__init__(
            {
                "rx": In(1, init=1),
                "tx": Out(1, init=1),
                "running": Out(1),
                "passed": Out(1),
                "failed": Out(1),
            }
        )

    @property
    def fabric(self):
        """The fabric."""
        return self._fabric

    def elaborate(self, platform):
        m = Module()
        m.submodules.fabric = fabric = Assembly(self._fabric.netlist)
        m.submodules.tester = tester = self._tester
        m.submodules.console = console = Console(self._fabric, self._template.starts)
        m.submodules.reporter = reporter = Reporter(self._template)
        m.submodules.receiver = receiver = UartReceiver(self._divisor)
        m.submodules.transmitter = transmitter = UartTransmitter(self._divisor)
        connect(m, receiver.data, console.data)
        connect(m, reporter.data, transmitter.data)
        self._share(m, fabric, tester, console)
        m.d.comb += [
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            self.running.eq(tester.busy | fabric.busy),
            self.passed.eq(console.passed),
            self.failed.eq(console.failed),
            tester.start.eq(console.test),
            tester.run.eq(console.run),
            console.testing.eq(tester.busy),
            console.result.eq(tester.result),
            reporter.start.eq(console.report),
            reporter.line.eq(console.line),
            console.reporting.eq(reporter.busy),
        ]
        numbers = {
            RUN: console.run,
            CYCLES: fabric.cycles,
            NODE: tester.node,
            PLACE: tester.place,
            EXPECTED: tester.expected,
            GOT: tester.got,
            WORD: console.word,
        }
        m.d.comb += [getattr(reporter, f"number_{k}").eq(v) for k, v in numbers.items()]
        return m

    def _share(self, m, fabric, tester, console):
        """Let the tester drive the fabric while it is busy, else the console."""
        for name, member in HostPort(self._fabric).members.items():
            ours = getattr(fabric, name)
            users = getattr(tester.host, name), getattr(console.host, name)
            if member.flow is In:
                m.d.comb += [user.eq(ours) for user in users]
            else:
                with m.If(tester.busy):
                    m.d.comb += ours.eq(users[0])
                with m.Else():
                    m.d.comb += ours.eq(users[1])


def self_test(fabric, divisor):
    """The image of a fabric; see `SelfTest`.

    Raises
    ------
    InputError
        If the fabric has no host port.
    """
    if fabric.top != "host":
        raise InputError(f"Fabric of a self-test must have the host top, not {fabric.top}")
    return SelfTest(fabric, divisor)
