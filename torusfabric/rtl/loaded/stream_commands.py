"""Commands of a fabric with streams whose tables are loaded; one of them loads an image."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ...program.mode import Range
from ..memories import address_width
from ..run_choices import ERROR_BITS, RunChoices, RunError
from ..streams.commands import Commands, CommandShape
from ..streams.ports import COMMAND, LOAD
from .image_loader import SETTLE, WORDS
from .layout import TableLayout
from .sequencer import found_entry
from .stream_ends import run_facts

__all__ = ["LoadedCommands"]

#: Cycles from the last word of an image until it is known whether it is there.
SETTLED = SETTLE + 2


class LoadedCommands(Commands):
    """Takes commands; those of runs find an entry, and those that load have an image behind them.

    An image waits until all runs before it are over, and nodes have passed on what these have
    brought. Its status says whether it is there.

    Members
    -------
    starts, entries, loaded : In
        As of `LoadedSequencer`.
    all_rest : In(1)
        Whether all nodes have passed on what runs have brought.
    load_we, load_first, load_data : Out
        The words of an image, for the loader.
    modes : Out
        A bit for each mode that may run.
    """

    def __init__(self, layout: TableLayout, choices: RunChoices) -> None:
        self._layout, frame = layout, layout.frame
        operations = len(choices.operators.operators) if choices.operators else 0
        entries = frame.entries
        shape = CommandShape(
            roots=(None,) * entries,
            operations=(operations,) * entries,
            most=frame.flits,
            any_length=True,
            barrier=False,
            facts=run_facts(layout),
            operation_bits=choices.inputs.get("operation", 0),
            served=tuple((Range(1, number),) for number in range(entries)),
        )
        members = {
            "starts": In(entries * layout.start.size),
            "entries": In(entries),
            "loaded": In(1),
            "all_rest": In(1),
            **{name: Out(bits) for name, bits in WORDS.items()},
            "modes": Out(entries),
        }
        super().__init__(shape, members)

    def _collect(self, m: Module, there: Signal, taken: Signal, rests: Value) -> dict[str, Value]:
        command = super()._collect(m, there, taken, rests)
        self._find(m, command)
        self._loads = loads = Signal(name="loads")
        ends, begun = Signal(name="image_ends"), Signal(name="image_begun")
        left = Signal(range(SETTLED + 1), name="settles")
        words, was_loaded = Signal(name="at_image"), Signal(name="was_loaded")
        m.d.comb += [
            loads.eq(command["mode"] == LOAD),
            words.eq(loads & (self._number == len(COMMAND)) & ~there),
            self.load_data.eq(self.value("tdata")),
            self.load_first.eq(~begun),
        ]
        # What has been asked for is done, and nobody asks for more, while an image comes.
        with m.If(words):
            m.d.comb += self.tready.eq(rests & self.value("all_rest") & ~ends)
            m.d.comb += self.load_we.eq(self.value("tvalid") & self.tready)
        # What is there whole was not for a while.
        self._there = image_there = Signal(name="image_there")
        m.d.sync += [
            was_loaded.eq(self.value("loaded")),
            image_there.eq(begun & (image_there | (self.value("loaded") & ~was_loaded))),
        ]
        with m.If(taken):
            m.d.sync += begun.eq(0)
        with m.If(self.load_we):
            m.d.sync += [begun.eq(1), there.eq(0), ends.eq(self.value("tlast")), left.eq(SETTLED)]
        with m.If(ends):
            m.d.sync += left.eq(left - 1)
            with m.If(left == 0):
                m.d.sync += [ends.eq(0), there.eq(1)]
        return command

    def _find(self, m: Module, command: dict[str, Value]) -> None:
        """Find the entry of a command, and why there may be none."""
        layout, length = self._layout, command["length"][: self.shape.most.bit_length()]
        bits = address_width(layout.frame.nodes)
        chosen = {
            "mode": command["mode"][: layout.entry_bits],
            # Of any length, that for the longest messages.
            "length": Mux(length == 0, Const(self.shape.most, len(length)), length),
            "root": command["root"][:bits],
        }
        high = command["root"][bits:].any()
        self._entry, *self._refusals = found_entry(m, self, layout, chosen, high)

    def _form(self, command: dict[str, Value]) -> Value:
        return self._entry

    def _fine(self, command: dict[str, Value], error: Value) -> Value:
        return super()._fine(command, error) & ~self._loads

    def _error(self, m: Module, command: dict[str, Value]) -> Value:
        no_root, missing = self._refusals
        error = Mux(no_root, RunError.ROOT, super()._error(m, command))
        missing |= command["mode"] >= self._layout.frame.entries
        none = Mux(self.value("loaded"), RunError.MODE, RunError.IMAGE)
        image = Mux(self._there, Const(RunError.NONE, ERROR_BITS), RunError.IMAGE)
        return Mux(self._loads, image, Mux(missing, none, error))
