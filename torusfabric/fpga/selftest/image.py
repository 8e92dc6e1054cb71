"""The image: fabric, tester, interpreter, line sender and serial line, put together."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from ...errors import InputError
from ...rtl.assembly import Assembly
from .facts import facts_of
from .interpreter import Interpreter
from .jobs import LETTERS, choices_of
from .line_sender import LineSender, Template
from .tester import PATIENCE, Tester, host_port
from .uart import UartReceiver, UartTransmitter

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["SelfTest", "self_test"]

#: Names of the numbers, as they are in the lines; what a run chooses comes on top of them.
RUN, CYCLES, PREDICTED, NODE, ADDRESS, EXPECTED, GOT, WORD, ERROR = (
    "run",
    "cycles",
    "predicted",
    "node",
    "address",
    "expected",
    "got",
    "word",
    "error",
)


def template_of(fabric: "Fabric") -> Template:
    """The lines that the image sends."""
    netlist, predicted, choices = fabric.netlist, fabric.predicted_cycles, choices_of(fabric)
    numbers = {
        RUN: 16,
        CYCLES: (predicted + PATIENCE).bit_length(),
        **{name: netlist.inputs[name] for name in choices},
        NODE: netlist.inputs["host_node"],
        ADDRESS: netlist.inputs["host_addr"],
        EXPECTED: fabric.width,
        GOT: fabric.width,
        WORD: fabric.width,
    }
    cycles = f"{_shown(CYCLES)} predicted={predicted:x}"
    tested, refused = cycles, {}
    if choices:
        numbers |= {PREDICTED: predicted.bit_length(), ERROR: netlist.outputs["error"]}
        cycles = _shown(CYCLES)
        tested = _shown(*choices, CYCLES, PREDICTED)
        refused = {"refused": f"refused {_shown(ERROR)}"}
    lines = {
        "info": json.dumps(facts_of(fabric), separators=(",", ":")),
        "help": f"commands: HEX n node, HEX p address, HEX w write, HEX r read, {_start(choices)}, "
        "HEX t test, q result, i info",
        "pass": f"pass {_shown(RUN)} {tested}",
        "wrong": f"fail {_shown(RUN)} {tested} {_shown(NODE, ADDRESS, EXPECTED, GOT)}",
        "late": f"late {_shown(RUN)} {tested}",
        "done": f"done {cycles}",
        "word": f"{{{WORD}}}",
    }
    return Template(lines | refused, numbers)


def _shown(*names: str) -> str:
    """Numbers in a line, each with its name."""
    return " ".join(f"{name}={{{name}}}" for name in names)


def _start(choices: Iterable[str]) -> str:
    """The command that starts a run, in the line of help, after those that say what it chooses."""
    return ", ".join([*(f"HEX {LETTERS[name]} {name}" for name in choices), "s start"])


class SelfTest(wiring.Component):
    """A fabric that tests itself, once at power-up and on command.

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
        For lamps: whether a collective or a test runs, and the result of the last test.
    """

    def __init__(self, fabric: "Fabric", divisor: int) -> None:
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
    def fabric(self) -> "Fabric":
        """The fabric that is tested."""
        return self._fabric

    def elaborate(self, platform: Any) -> Module:
        """Connect the parts."""
        m = Module()
        m.submodules.fabric = fabric = Assembly(self._fabric.netlist)
        m.submodules.tester = tester = self._tester
        m.submodules.interpreter = interpreter = Interpreter(self._fabric, self._template.starts)
        m.submodules.sender = sender = LineSender(self._template)
        m.submodules.receiver = receiver = UartReceiver(self._divisor)
        m.submodules.transmitter = transmitter = UartTransmitter(self._divisor)
        connect(m, receiver.data, interpreter.data)
        connect(m, sender.data, transmitter.data)
        self._share(m, fabric, tester, interpreter)
        m.d.comb += [
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            self.running.eq(tester.busy | fabric.busy),
            self.passed.eq(interpreter.passed),
            self.failed.eq(interpreter.failed),
            tester.start.eq(interpreter.test),
            tester.run.eq(interpreter.run),
            interpreter.testing.eq(tester.busy),
            interpreter.result.eq(tester.result),
            sender.start.eq(interpreter.send),
            sender.line.eq(interpreter.line),
            interpreter.sending.eq(sender.busy),
        ]
        numbers = {
            RUN: interpreter.run,
            CYCLES: fabric.cycles,
            NODE: tester.node,
            ADDRESS: tester.address,
            EXPECTED: tester.expected,
            GOT: tester.got,
            WORD: interpreter.word,
        }
        if choices := choices_of(self._fabric):
            numbers |= {name: getattr(tester, name) for name in choices}
            numbers |= {PREDICTED: tester.predicted, ERROR: fabric.error}
        m.d.comb += [getattr(sender, f"number_{k}").eq(v) for k, v in numbers.items()]
        return m

    def _share(self, m: Module, fabric: Assembly, tester: Tester, interpreter: Interpreter) -> None:
        """Connect the fabric to the tester while that is busy, else to the interpreter."""
        for name, member in host_port(self._fabric).members.items():
            ours = getattr(fabric, name)
            users = getattr(tester.host, name), getattr(interpreter.host, name)
            if member.flow is In:
                m.d.comb += [user.eq(ours) for user in users]
            else:
                with m.If(tester.busy):
                    m.d.comb += ours.eq(users[0])
                with m.Else():
                    m.d.comb += ours.eq(users[1])


def self_test(fabric: "Fabric", divisor: int) -> SelfTest:
    """The image of a fabric; parameters as of `SelfTest`.

    Raises
    ------
    InputError
        If the fabric has no host port.
    """
    if (interface := fabric.bus or fabric.top) != "host":
        raise InputError(f"Fabric of a self-test must have the host top, not {interface}")
    return SelfTest(fabric, divisor)
