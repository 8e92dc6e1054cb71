"""`CommandPort`: a run port in place of the command and status streams, for the bus adapter.

A *run port* is a group of signals that start a run and report its state: `start` with the choices
of the run, and `busy`, `done`, `error` and `cycles`. A command is a packet that asks for one run, a
status a packet that reports its end. Each start becomes a command, and each status sets `done`,
`error` and `cycles`. So the bus adapter drives a fabric with streams as it drives one without.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from ...rtl.memories import address_width, choose_value
from ...rtl.modules import Leaf
from ...rtl.netlist import Role, add_single_instance
from ...rtl.run_choices import ERROR_BITS, RunChoices
from .ports import COMMAND_BITS, COMMAND_NETS, COMMAND_WORDS, STATUS_WORDS, command_members

if TYPE_CHECKING:
    from ...program import Program
    from ...rtl.core.core import CoreBuilder

__all__ = ["CommandPort", "add_run_port", "run_choices"]

#: Outputs with the state of the last run, and their widths.
STATUS_OUTPUTS = {"busy": 1, "done": 1, "error": ERROR_BITS, "cycles": 32}


def run_choices(program: Program) -> dict[str, int]:
    """Return the choices of a run of `program`: the bits of each, by name.

    The names are those of words of a command, such as ``mode`` or ``length``.
    """
    modes = len(program.modes) + program.barrier
    choices = RunChoices.from_program(program).sampled_inputs
    return dict(choices) | ({"mode": address_width(modes)} if modes > 1 else {})


def add_run_port(
    build: CoreBuilder, choices: Mapping[str, int], kept: Collection[str] = ()
) -> None:
    """Replace the command and status streams of a fabric by a run port, for the bus adapter.

    A run port is a group of signals that start a run and report its state: `start`, the choices of
    the run, `busy`, `done`, `error` and `cycles`.

    Parameters
    ----------
    build : CoreBuilder
        The netlist, whose ports become nets.
    choices : mapping of str to int
        Widths of the choices of a command, keyed by name.
    kept : collection of str
        Names of other ports, which stay ports of the fabric.
    """
    ports = {"start": 1, **choices, **STATUS_OUTPUTS}
    inputs, outputs = build.turn_ports_into_nets({name: f"run_{name}" for name in ports})
    for name in ("start", *choices):
        build.add_input(name, ports[name])
    for name in sorted(inputs.keys() & {*kept}):
        build.add_input(name, inputs[name])
    add_single_instance(
        build, "run_commands", Role.BUS, partial(CommandPort, choices), renamed=COMMAND_NETS
    )
    for name, bits in (STATUS_OUTPUTS | outputs).items():
        if name in STATUS_OUTPUTS or name in kept or name.startswith("stalled"):
            build.add_output(name, bits)


class CommandPort(Leaf):
    """Module that turns each pulse of `start` into a command, and stores the status of the run.

    Parameters
    ----------
    choices : mapping of str to int
        Widths of the choices of a command, keyed by their names in `COMMAND_WORDS`.

    Members
    -------
    start : In(1)
        A pulse of one cycle sends a command; ignored while `busy` is high.
    mode, length, root, operation : In
        Choices, sampled with `start`; each only if runs have this choice.
    busy, done : Out(1)
        `busy` is high from the edge after the start until the status has arrived; then `done` is
        high until the next start.
    error, cycles : Out
        Contents of the last status.
    tdata, tvalid, tlast, tready : Out, In
        The command stream.
    status_tdata, status_tvalid, status_tlast, status_tready : In, Out
        The status stream.
    """

    def __init__(self, choices: Mapping[str, int]) -> None:
        self._choices = dict(choices)
        super().__init__(
            {
                "start": In(1),
                **{name: In(bits) for name, bits in choices.items()},
                **{name: Out(bits) for name, bits in STATUS_OUTPUTS.items()},
                **{name: each.flip() for name, each in command_members().items()},
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the sender of commands, and the registers for statuses."""
        m = Module()
        number, begins = Signal(range(len(COMMAND_WORDS)), name="number"), Signal(name="begins")
        words: list[Value] = []
        m.d.comb += begins.eq(self.input_value("start") & ~self.busy)
        for name in COMMAND_WORDS:
            kept: Value = Const(0, COMMAND_BITS)
            if name in self._choices:
                kept = Signal(self._choices[name], name=f"kept_{name}", reset_less=True)
                with m.If(begins):
                    m.d.sync += kept.eq(self.input_value(name))
            words.append(kept)
        comes = self.input_value("status_tvalid")
        beat = Signal(range(len(STATUS_WORDS)), name="status_beat")
        m.d.comb += [
            self.tdata.eq(choose_value(words, number)),
            self.tlast.eq(number == len(COMMAND_WORDS) - 1),
            self.status_tready.eq(1),
        ]
        with m.If(begins):
            m.d.sync += [self.busy.eq(1), self.done.eq(0), self.tvalid.eq(1)]
        with m.If(self.tvalid & self.input_value("tready")):
            m.d.sync += [self.tvalid.eq(~self.tlast), number.eq(number + 1)]
            with m.If(self.tlast):
                m.d.sync += number.eq(0)
        with m.If(comes):
            m.d.sync += beat.eq(beat + 1)
            with m.If(beat == STATUS_WORDS.index("error")):
                m.d.sync += self.error.eq(self.input_value("status_tdata"))
            with m.If(self.input_value("status_tlast")):
                m.d.sync += [beat.eq(0), self.cycles.eq(self.input_value("status_tdata"))]
                m.d.sync += [self.busy.eq(0), self.done.eq(1)]
        return m
