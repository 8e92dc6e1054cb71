"""Commands, one packet for each run: what is chosen for it; and statuses: what became of it.

While a run goes on, the message of the next is loaded, and that of the one after may wait; so two
commands are under way besides the run, one of an even and one of an odd number.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Member, Out

from ...rtl.memories import choose, constant_at
from ...rtl.modules import Leaf
from ...rtl.run_choices import (
    ERROR_BITS,
    RunChoices,
    RunError,
    entry_members,
    found_entry,
    run_form,
)
from .ports import COMMAND, COMMAND_BITS, LOAD, STATUS, command_members
from .run_facts import RunFacts

__all__ = ["CommandShape", "Commands"]

#: No reason why a command cannot be carried out.
NONE = Const(RunError.NONE, ERROR_BITS)


@dataclass(frozen=True)
class CommandShape:
    """What commands choose.

    Parameters
    ----------
    choices : RunChoices
        Those of each mode, of which the barrier is the last, if there is one; where tables are
        loaded, those of each entry.
    facts : RunFacts
        What nodes have to know of a run.
    most : int
        Words of the longest packet.
    barrier : bool
        Whether in the last mode nodes only wait for one another.
    starts : data.StructLayout or None
        Where tables are loaded, what starts are compared with, of each entry: an entry is found for
        a form, and commands may bring images.
    root_bits, settled : int
        Then the bits of the number of a node; and cycles from the last word of an image until it is
        known whether it is there.
    """

    choices: RunChoices
    facts: RunFacts
    most: int
    barrier: bool = False
    starts: data.StructLayout | None = None
    root_bits: int = 0
    settled: int = 0

    @property
    def operations(self) -> tuple[int, ...]:
        """Among how many operators each mode chooses, if any does; 0 where nothing is combined."""
        unit = self.choices.operators
        count = len(unit.operators) if unit else 0
        return tuple(count * combines for combines in self.choices.combining)

    @property
    def operation_bits(self) -> int:
        """Bits of the number of an operator; 0 where there is no choice."""
        return self.choices.inputs.get("operation", 0)

    @property
    def forms(self) -> int:
        """Number of forms of all modes; the last is the barrier, if there is one."""
        return 1 + max(form for ranges in self.choices.served for _, form in ranges)

    @property
    def mode_bits(self) -> int:
        """Bits of a mode, as commands say it."""
        return (self.choices.modes - 1).bit_length()

    def length(self, length: Value) -> Value:
        """The length by which the form of a run is found: the longest where it may have any."""
        length = length[: self.most.bit_length()]
        return Mux(length == 0, Const(self.most, len(length)), length)

    @property
    def bits(self) -> dict[str, int]:
        """Bits that are kept of the beats of a command."""
        return {
            "mode": self.facts.form_bits,
            "length": self.most.bit_length(),
            "root": self.facts.root_bits,
            "operation": self.operation_bits,
            "tag": COMMAND_BITS,
        }


class Commands(Leaf):
    """Takes commands, has their messages loaded, and reports what became of them.

    Where tables are loaded, a command may have an image behind it. That waits until all runs before
    it are over, and nodes have passed on what these have brought; its status says whether it is
    there.

    Members
    -------
    tdata, tvalid, tlast, tready : In, Out
    status_tdata, status_tvalid, status_tlast, status_tready : Out, In
        The streams of commands and of statuses.
    run_begins, run_over : In(1)
        High for a cycle when a run begins, and when one has ended.
    error, cycles : In
        Of the run that has ended.
    mode, root, operation, wanted, barrier : Out
        Of the run that is next; the sequencer is given the form for the mode. The length is what
        its command says, 0 for any.
    may_begin : Out(1)
        Whether there is room for its status.
    load_valid, load_mode, load_root : Out
        What the commands under way say, of an even and of an odd number: forms for modes.
    unload_mode, unload_root : Out
        The same of the last run in each section.
    starts, entries, loaded : In
    modes : Out
        Where tables are loaded, as of `entry_members`; so are the following.
    all_rest : In(1)
        Whether all nodes have passed on what runs have brought.
    load_we, load_first, load_data : Out
        The words of an image, for what loads it.
    """

    def __init__(self, shape: CommandShape) -> None:
        self.shape, facts, loading = shape, shape.facts, dict[str, Member]()
        if shape.starts:
            words = {"load_we": Out(1), "load_first": Out(1), "load_data": Out(COMMAND_BITS)}
            loading = {
                **entry_members(shape.starts, shape.choices.modes),
                "all_rest": In(1),
                **words,
            }
        said = facts.said_widths("load")
        if facts.by_form:  # else nodes keep what they have looked up
            said |= facts.said_widths("unload")
        super().__init__(
            {
                **loading,
                **command_members(),
                "run_begins": In(1),
                "run_over": In(1),
                "error": In(ERROR_BITS),
                "cycles": In(32),
                "mode": Out(facts.form_bits),
                "root": Out(facts.root_bits),
                "operation": Out(shape.operation_bits),
                "wanted": Out(shape.bits["length"]),
                "barrier": Out(int(shape.barrier)),
                "may_begin": Out(1),
                **{name: Out(bits) for name, bits in said.items()},
            }
        )
        #: Beats of the packet so far; one more than a command has stands for any more.
        self._number = Signal(range(len(COMMAND) + 2), name="number")

    def elaborate(self, platform: object) -> Module:
        """Build what takes commands, what is known of those under way, and the statuses."""
        m = Module()
        there, taken = Signal(name="there"), Signal(name="taken")
        under_way, ends = Signal(2, name="under_way"), self.value("run_over")
        rests = under_way == 0
        command = self._collect(m, there, taken)
        error, fine = Signal(ERROR_BITS, name="refusal"), Signal(name="fine")
        carried_out, whole = error == RunError.NONE, self._number == len(COMMAND)
        if self.shape.starts:
            form, refusal = self._find(m, command, self.shape.starts)
            loads, loaded = self._load(m, command, there, taken, rests)
            refusal = Mux(loads, Mux(loaded, NONE, RunError.IMAGE), refusal)
            carried_out &= ~loads
            whole |= loads & (self._number > len(COMMAND))
        else:
            form, refusal = self._choose(command)
        m.d.comb += error.eq(Mux(whole, refusal, RunError.COMMAND))
        m.d.comb += fine.eq(carried_out)
        odd, put, refused = Signal(name="odd"), Signal(name="put"), Signal(name="refused")
        m.d.comb += [
            put.eq(there & fine & ~self.load_valid.bit_select(odd, 1)),
            # Statuses come in the order of commands.
            refused.eq(there & ~fine & rests & self.may_begin),
            taken.eq(put | refused),
        ]
        m.d.sync += [odd.eq(odd ^ put), under_way.eq(under_way + put - ends)]
        tag, idle = self._runs(m, {**command, "mode": form}, put, odd)
        carried_out = (self.value("error") == RunError.NONE) & ~idle
        cycles = Mux(carried_out, self.value("cycles"), 0)
        made = Cat(tag, self.value("error"), cycles)
        self._report(m, Mux(ends, made, Cat(command["tag"], error, Const(0, 32))), refused)
        return m

    def _collect(self, m: Module, there: Signal, taken: Signal) -> dict[str, Value]:
        """Take the beats of a packet up to its last one, and count them.

        Beats behind those of a command are counted as one; a tag that is missing is 0.
        """
        number, beat = self._number, Signal(name="beat")
        m.d.comb += [self.tready.eq(~there), beat.eq(self.value("tvalid") & self.tready)]
        command: dict[str, Value] = {}
        for k, name in enumerate(COMMAND):
            command[name] = field = Signal(COMMAND_BITS, name=f"command_{name}")
            with m.If(taken):
                m.d.sync += field.eq(0)
            with m.Elif(beat & (number == k)):
                m.d.sync += field.eq(self.value("tdata"))
        with m.If(taken):
            m.d.sync += [there.eq(0), number.eq(0)]
        with m.Elif(beat):
            m.d.sync += there.eq(self.value("tlast"))
            m.d.sync += number.eq(number + (number <= len(COMMAND)))
        return command

    def _find(
        self, m: Module, command: dict[str, Value], starts: data.StructLayout
    ) -> tuple[Value, Value]:
        """Find the entry of a command; and why it cannot be carried out."""
        bits = self.shape.root_bits
        chosen = {
            "mode": command["mode"][: self.shape.facts.form_bits],
            "length": self.shape.length(command["length"]),
            "root": command["root"][:bits],
        }
        beyond = command["root"][bits:].any()
        entry, no_root, missing = found_entry(m, self, starts, chosen, beyond)
        unknown = missing | (command["mode"] >= self.shape.choices.modes)
        none = Mux(self.value("loaded"), RunError.MODE, RunError.IMAGE)
        refusal = Mux(no_root, RunError.ROOT, self._other_refusal(command))
        return entry, Mux(unknown, none, refusal)

    def _load(
        self, m: Module, command: dict[str, Value], there: Signal, taken: Signal, rests: Value
    ) -> tuple[Value, Value]:
        """Pass on the image behind a command; whether it has one, and whether that is there."""
        settled, loads = self.shape.settled, Signal(name="loads")
        ends, begun = Signal(name="image_ends"), Signal(name="image_begun")
        left = Signal(range(settled + 1), name="settles")
        words, was_loaded = Signal(name="at_image"), Signal(name="was_loaded")
        m.d.comb += [
            loads.eq(command["mode"] == LOAD),
            words.eq(loads & (self._number >= len(COMMAND)) & ~there),
            self.load_data.eq(self.value("tdata")),
            self.load_first.eq(~begun),
        ]
        # What has been asked for is done, and nobody asks for more, while an image comes.
        with m.If(words):
            m.d.comb += self.tready.eq(rests & self.value("all_rest") & ~ends)
            m.d.comb += self.load_we.eq(self.value("tvalid") & self.tready)
        # What is there whole was not for a while.
        image_there = Signal(name="image_there")
        m.d.sync += [
            was_loaded.eq(self.value("loaded")),
            image_there.eq(begun & (image_there | (self.value("loaded") & ~was_loaded))),
        ]
        with m.If(taken):
            m.d.sync += begun.eq(0)
        with m.If(self.load_we):
            m.d.sync += [begun.eq(1), there.eq(0), ends.eq(self.value("tlast")), left.eq(settled)]
        with m.If(ends):
            m.d.sync += left.eq(left - 1)
            with m.If(left == 0):
                m.d.sync += [ends.eq(0), there.eq(1)]
        return loads, image_there

    def _choose(self, command: dict[str, Value]) -> tuple[Value, Value]:
        """The form of a command; and why it cannot be carried out, a `RunError`."""
        length = self.shape.length(command["length"])
        form = run_form(self.shape.choices.served, self._mode(command), length)
        unknown = command["mode"] >= self.shape.choices.modes
        return form, Mux(unknown, RunError.MODE, self._other_refusal(command))

    def _other_refusal(self, command: dict[str, Value]) -> Value:
        """The same but for its mode, and for roots that modes have in tables."""
        shape = self.shape
        mode = self._mode(command)
        error: Value = NONE
        if shape.operation_bits:
            known = constant_at(shape.operations, mode)
            unknown = (known != 0) & (command["operation"] >= known)
            error = Mux(unknown, RunError.OPERATION, error)
        length = command["length"]
        fits = length <= shape.most
        if not shape.choices.lengths:
            fits = (length == 0) | (length == shape.most)
        error = Mux(fits, error, RunError.LENGTH)
        if shape.facts.root_bits:
            known = constant_at([count or 0 for count in shape.choices.roots], mode)
            error = Mux((known != 0) & (command["root"] >= known), RunError.ROOT, error)
        return error

    def _mode(self, command: dict[str, Value]) -> Value:
        """The mode of a command that can be carried out."""
        return command["mode"][: max(self.shape.mode_bits, 1)]

    def _runs(
        self, m: Module, command: dict[str, Value], put: Value, odd: Value
    ) -> tuple[Value, Value]:
        """Keep what commands say until their runs begin, with forms for modes, and of runs until
        they end.

        Of the run under way, find out the tag, and whether it is a barrier: there is nothing to do.
        """
        begins, sections = self.value("run_begins"), self.shape.facts.sections
        section = Signal(sections.bits, name="next_section")
        following = section[0]
        # In its first cycle, a run may be told that the one before has ended.
        tag, begun = Signal(COMMAND_BITS, name="run_tag"), Signal(name="has_begun")
        m.d.sync += begun.eq(begins)
        with m.If(begins):
            m.d.sync += self.load_valid.bit_select(following, 1).eq(0)
            m.d.sync += section.eq(sections.following(section))
        with m.If(put):
            m.d.sync += self.load_valid.bit_select(odd, 1).eq(1)
        idle: Value = Const(0)
        waits: Value = Const(0)
        for name, bits in self.shape.bits.items():
            if not bits:
                continue
            both = Signal(2 * bits, name=f"{name}_under_way", reset_less=True)
            with m.If(put):
                m.d.sync += both.word_select(odd, bits).eq(command[name][:bits])
            chosen = both.word_select(following, bits)
            if name == "tag":
                with m.If(begun):
                    m.d.sync += tag.eq(both.word_select(~following, bits))
                continue
            if name == "mode" and self.shape.barrier:
                waits, idle = chosen == self.shape.forms - 1, Signal(name="run_idle")
                m.d.sync += self.barrier.eq(waits)
                with m.If(begins):
                    m.d.sync += idle.eq(waits)
            if name == "length":
                # A register, so that this module does not wait for what its answer decides. No run
                # begins so soon after a command, or after another run.
                m.d.sync += self.wanted.eq(Mux(waits, 1, chosen))
                continue
            m.d.comb += getattr(self, name).eq(chosen)
            if name in ("mode", "root"):
                m.d.comb += getattr(self, f"load_{name}").eq(both)
                if f"unload_{name}" in self.signature.members:
                    kept = getattr(self, f"unload_{name}").word_select(section, bits)
                    with m.If(begins):
                        m.d.sync += kept.eq(chosen)
        return tag, idle

    def _report(self, m: Module, status: Value, refused: Value) -> None:
        """Send statuses; there is room for two, and no run begins that would find none."""
        promised, there = Signal(2, name="promised"), Signal(2, name="statuses")
        into, out = Signal(name="into"), Signal(name="out")
        beat = Signal(range(len(STATUS)), name="status_beat")
        kept = [Signal(len(status), name=f"status_{k}", reset_less=True) for k in range(2)]
        comes, leaves = Signal(name="comes"), Signal(name="leaves")
        shown = Mux(out, kept[1], kept[0])
        tag, rest = shown[:COMMAND_BITS], shown[COMMAND_BITS:]
        words = [tag, rest[:ERROR_BITS], rest[ERROR_BITS:]]
        moves = self.status_tvalid & self.value("status_tready")
        m.d.comb += [
            comes.eq(self.value("run_over") | refused),
            leaves.eq(moves & self.status_tlast),
            self.status_tvalid.eq(there != 0),
            self.status_tlast.eq(beat == len(STATUS) - 1),
            self.status_tdata.eq(choose(words, beat)),
        ]
        begins = self.value("run_begins") | refused
        following = Signal.like(promised, name="next_promised")
        m.d.comb += following.eq(promised + begins - leaves)
        m.d.sync += [
            promised.eq(following),
            self.may_begin.eq(following != 2),
            there.eq(there + comes - leaves),
            into.eq(into ^ comes),
            out.eq(out ^ leaves),
        ]
        for k, entry in enumerate(kept):
            with m.If(comes & (into == k)):
                m.d.sync += entry.eq(status)
        with m.If(moves):
            m.d.sync += beat.eq(Mux(self.status_tlast, 0, beat + 1))
