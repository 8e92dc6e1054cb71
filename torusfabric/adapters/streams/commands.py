"""`Commands`: the module that takes a command for each run, and sends a status for each.

A *command* is a packet with the choices of a run: mode, length, root, operation and a tag. A
*status* is a packet with the tag, an error number and the cycles of the run. Statuses have the
order of commands.

Nodes *load* a message when their loaders take its packets from the user and write them into the
memories; unloaders send the received words of a run to the user. Runs, their commands and their
messages are numbered. While run k is under way, nodes may load the messages of runs k + 1 and
k + 2. So the module holds two commands besides that of the run under way, one with an even and one
with an odd number. Run k uses *section* ``k mod S``, one of S equal parts of each memory.

With loadable tables (`torusfabric.adapters.loading`) an *image* can replace the modes. An *entry*
is then one form of a mode, for one root if runs choose the root. The table `starts` has a row for
each entry: the mode, the least length and the root of the commands that select this entry.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Member, Out

from ...rtl.memories import address_width, choose_value, constant_at
from ...rtl.modules import Leaf, delay_value
from ...rtl.run_choices import (
    ERROR_BITS,
    RunChoices,
    RunError,
    entry_members,
    find_entry,
    find_form,
)
from .ports import COMMAND_BITS, COMMAND_WORDS, LOAD_MODE, STATUS_WORDS, command_members
from .run_facts import RunFacts

__all__ = ["CommandShape", "Commands"]

#: The error number of a valid command.
NO_ERROR = Const(RunError.NONE, ERROR_BITS)


@dataclass(frozen=True)
class CommandShape:
    """Parameters of `Commands`, the module that takes the command for each run and sends statuses.

    Parameters
    ----------
    choices : RunChoices
        The values that commands may choose in each mode; the last mode is the barrier, if there is
        one. With loadable tables, the values in each *entry* instead: one form of a mode, for one
        root if runs choose the root.
    facts : RunFacts
        Widths of the signals that tell loaders and unloaders the form and root of a run.
    most : int
        Flits of the longest packet.
    barrier : bool
        True if the last mode is a barrier, in which nodes only wait for one another.
    starts : data.StructLayout or None
        With loadable tables, the fields of a row of the table `starts`. This table has a row for
        each entry, with mode, least length and root; a command selects the entry whose row it
        matches. An image may follow a command.
    root_bits : int
        With loadable tables, the bits of a node number.
    settled : int
        With loadable tables, the cycles from the last word of an image until the input `loaded` of
        `Commands` is valid.
    """

    choices: RunChoices
    facts: RunFacts
    most: int
    barrier: bool = False
    starts: data.StructLayout | None = None
    root_bits: int = 0
    settled: int = 0

    @property
    def operator_counts(self) -> tuple[int, ...]:
        """Number of operators from which each mode chooses; 0 for a mode that combines nothing."""
        unit = self.choices.operators
        count = len(unit.operators) if unit else 0
        return tuple(count * combines for combines in self.choices.combining)

    @property
    def operation_bits(self) -> int:
        """Bits of the operator number in a command; 0 if runs do not choose the operator."""
        return self.choices.sampled_inputs.get("operation", 0)

    @property
    def n_forms(self) -> int:
        """Number of forms of all modes together; a barrier counts as the last form."""
        return 1 + max(form for ranges in self.choices.served for _, form in ranges)

    @property
    def mode_bits(self) -> int:
        """Bits of the mode in a command."""
        return (self.choices.n_modes - 1).bit_length()

    def effective_length(self, length: Value) -> Value:
        """Return the length, in flits, by which the form of a run is selected, as a signal.

        Length 0 in a command leaves the length to the packets; the form is then that for the
        longest messages.
        """
        length = length[: self.most.bit_length()]
        return Mux(length == 0, Const(self.most, len(length)), length)

    @property
    def stored_bits(self) -> dict[str, int]:
        """For each word of a command, by name, the bits that are stored while the command waits.

        The entry ``mode`` has the bits of a form number, because the form is stored in place of the
        mode.
        """
        return {
            "mode": self.facts.form_bits,
            "length": self.most.bit_length(),
            "root": self.facts.root_bits,
            "operation": self.operation_bits,
            "tag": COMMAND_BITS,
        }


class Commands(Leaf):
    """Module that checks commands, lets loaders load messages for their runs, and sends statuses.

    Commands, runs and messages have equal numbers. A *loader* takes the message of a node from the
    user and writes it into memories. The module has two registers for commands whose runs have not
    begun, one for even and one for odd numbers. A valid command is *put* into its register when the
    register is free. Loaders may then load the message of its run. An invalid command is refused
    with a status, when all runs before it are over.

    With loadable tables, an image may follow a command. The module accepts the image when all runs
    before it are over and nodes have sent all received words. The status tells whether the image
    was loaded.

    Parameters
    ----------
    shape : CommandShape
        The choices of commands.

    Members
    -------
    tdata, tvalid, tlast, tready : In, Out
        The command stream.
    status_tdata, status_tvalid, status_tlast, status_tready : Out, In
        The status stream.
    run_begins, run_over : In(1)
        High for a cycle when a run begins, and when a run has ended.
    error, cycles : In
        Error number and cycles of the run that has ended.
    mode, root, operation, wanted, barrier : Out
        Choices of the next run. `mode` is the number of the form, for the sequencer. The highest
        bit of `wanted` is high if the command demands a length. Its other bits are then the number
        of the last flit of a packet with this length.
    may_begin : Out(1)
        High if there is room for the status of the next run.
    load_valid, load_mode, load_root : Out
        Three outputs about waiting commands, each with two fields: one for the waiting command
        with an even number, one for that with an odd number. `load_valid` is high if the command is
        put, `load_mode` has its form, and `load_root` its root.
    unload_mode, unload_root : Out
        Form and root of the last run in each section. A section is one of some equal parts of each
        memory; consecutive runs use the sections in turn.
    starts, entries, loaded : In
        With loadable tables: all rows of the table `starts`, a bit for each entry that may run, and
        a bit that is high if an image is loaded; see `entry_members`.
    modes : Out
        With loadable tables, a bit for each mode: high if the mode is loaded, so that it may run.
    all_rest : In(1)
        With loadable tables, high if all nodes have sent all received words.
    load_we, load_first, load_data : Out
        With loadable tables, the words of an image, for the module that writes the tables.
    """

    def __init__(self, shape: CommandShape) -> None:
        self.shape, facts, loading = shape, shape.facts, dict[str, Member]()
        if shape.starts:
            words = {"load_we": Out(1), "load_first": Out(1), "load_data": Out(COMMAND_BITS)}
            loading = {
                **entry_members(shape.starts, shape.choices.n_modes),
                "all_rest": In(1),
                **words,
            }
        said = facts.run_choice_widths("load")
        if facts.has_form_constants:  # with loadable tables nodes store the facts that they look up
            said |= facts.run_choice_widths("unload")
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
                "wanted": Out(address_width(shape.most) + 1),
                "barrier": Out(int(shape.barrier)),
                "may_begin": Out(1),
                **{name: Out(bits) for name, bits in said.items()},
            }
        )
        #: Words of the packet so far; the count stops at one more than a command has.
        self._number = Signal(range(len(COMMAND_WORDS) + 2), name="number")

    def elaborate(self, platform: object) -> Module:
        """Build the receiver and check of commands, their registers, and the sender of statuses."""
        m = Module()
        there, taken = Signal(name="there"), Signal(name="taken")
        under_way, ends = Signal(2, name="under_way"), self.input_value("run_over")
        rests = under_way == 0
        command, whole = self._collect_words(m, there, taken), Signal(name="whole")
        with m.If(self.input_value("tvalid") & self.tready):
            m.d.sync += whole.eq(self._number == len(COMMAND_WORDS) - 1)
        error, fine = Signal(ERROR_BITS, name="refusal"), Signal(name="fine")
        # Form and refusal depend on words before the last word of a command, and are registered
        # while the last word arrives. Why: they take several levels of LUTs, and `fine` enables
        # many registers.
        if self.shape.starts:
            form, refusal = self._find_entry(m, command, self.shape.starts)
        else:
            form, refusal = self._choose_form(command)
        valid = delay_value(m, refusal == RunError.NONE, 1, "choices_fit")
        form, refusal = delay_value(m, form, 1, "form"), delay_value(m, refusal, 1, "misfit")
        m.d.comb += [error.eq(Mux(whole, refusal, RunError.COMMAND)), fine.eq(whole & valid)]
        if self.shape.starts:
            loads, loaded = self._pass_image(m, command, there, taken, rests)
            with m.If(loads):
                m.d.comb += [error.eq(Mux(loaded, NO_ERROR, RunError.IMAGE)), fine.eq(0)]
                with m.If(self._number < len(COMMAND_WORDS)):
                    m.d.comb += error.eq(RunError.COMMAND)
        odd, put, refused = Signal(name="odd"), Signal(name="put"), Signal(name="refused")
        m.d.comb += [
            put.eq(there & fine & ~self.load_valid.bit_select(odd, 1)),
            # Refused only after all runs before, so that statuses have the order of commands.
            refused.eq(there & ~fine & rests & self.may_begin),
            taken.eq(put | refused),
        ]
        m.d.sync += [odd.eq(odd ^ put), under_way.eq(under_way + put - ends)]
        tag, idle = self._store_choices(m, {**command, "mode": form}, put, odd)
        carried_out = (self.input_value("error") == RunError.NONE) & ~idle
        cycles = Mux(carried_out, self.input_value("cycles"), 0)
        made = Cat(tag, self.input_value("error"), cycles)
        self._send_statuses(m, Mux(ends, made, Cat(command["tag"], error, Const(0, 32))), refused)
        return m

    def _collect_words(self, m: Module, there: Signal, taken: Signal) -> dict[str, Value]:
        """Add registers for the words of a command, and a counter; return the words by name.

        The method drives `there`, which is high from the last word of the command until `taken`.
        The input `taken` is high when the command has been stored elsewhere or refused, so that its
        words may be overwritten. A packet with a missing word is refused; its status has the tag 0.
        The count of words stops at one more than a command has.
        """
        number, beat = self._number, Signal(name="beat")
        m.d.comb += [self.tready.eq(~there), beat.eq(self.input_value("tvalid") & self.tready)]
        command: dict[str, Value] = {}
        for k, name in enumerate(COMMAND_WORDS):
            command[name] = field = Signal(COMMAND_BITS, name=f"command_{name}")
            with m.If(beat & (number == k)):
                m.d.sync += field.eq(self.input_value("tdata"))
        with m.If(beat & (number == 0)):
            m.d.sync += command["tag"].eq(0)
        with m.If(taken):
            m.d.sync += [there.eq(0), number.eq(0)]
        with m.Elif(beat):
            m.d.sync += there.eq(self.input_value("tlast"))
            m.d.sync += number.eq(number + (number <= len(COMMAND_WORDS)))
        return command

    def _find_entry(
        self, m: Module, command: dict[str, Value], starts: data.StructLayout
    ) -> tuple[Value, Value]:
        """Return the number of the entry that a command selects, and an error, as two signals.

        An entry is one form of a mode, for one root if runs choose the root; only a fabric with
        loadable tables has entries. The error is a `RunError`, 0 for a valid command. `command` has
        the words of the command by name, and `starts` the fields of a row of the table with one row
        for each entry.
        """
        bits = self.shape.root_bits
        chosen = {
            "mode": command["mode"][: self.shape.facts.form_bits],
            "length": self.shape.effective_length(command["length"]),
            "root": command["root"][:bits],
        }
        beyond = command["root"][bits:].any()
        entry, no_root, missing = find_entry(m, self, starts, chosen, beyond)
        unknown = missing | (command["mode"] >= self.shape.choices.n_modes)
        none = Mux(self.input_value("loaded"), RunError.MODE, RunError.IMAGE)
        refusal = Mux(no_root, RunError.ROOT, self._choice_error(command))
        return entry, Mux(unknown, none, refusal)

    def _pass_image(
        self, m: Module, command: dict[str, Value], there: Signal, taken: Signal, rests: Value
    ) -> tuple[Value, Value]:
        """Pass the image that follows a command to the module that writes the loadable tables.

        Return two signals: high if an image follows the command, and high if it has been loaded.
        `command` has the words of the command by name. `there` is a register that is high while a
        whole command waits; the method keeps it low until the image has ended and `loaded` is
        valid. `taken` is high when the command is accepted or refused, and `rests` if no run is
        under way.
        """
        settled, loads = self.shape.settled, Signal(name="loads")
        ends, begun = Signal(name="image_ends"), Signal(name="image_begun")
        left = Signal(range(settled + 1), name="settles")
        words, was_loaded = Signal(name="at_image"), Signal(name="was_loaded")
        m.d.comb += [
            loads.eq(command["mode"] == LOAD_MODE),
            words.eq(loads & (self._number >= len(COMMAND_WORDS)) & ~there),
            self.load_data.eq(self.input_value("tdata")),
            self.load_first.eq(~begun),
        ]
        # An image waits until all runs are over. No run can begin while it is being loaded, because
        # this module takes no further command.
        with m.If(words):
            m.d.comb += self.tready.eq(rests & self.input_value("all_rest") & ~ends)
            m.d.comb += self.load_we.eq(self.input_value("tvalid") & self.tready)
        # `loaded` is high for the preceding image, too, and falls with the first word of this one.
        # So only a rise after the first word counts.
        image_there = Signal(name="image_there")
        m.d.sync += [
            was_loaded.eq(self.input_value("loaded")),
            image_there.eq(begun & (image_there | (self.input_value("loaded") & ~was_loaded))),
        ]
        with m.If(taken):
            m.d.sync += begun.eq(0)
        with m.If(self.load_we):
            m.d.sync += [
                begun.eq(1),
                there.eq(0),
                ends.eq(self.input_value("tlast")),
                left.eq(settled),
            ]
        with m.If(ends):
            m.d.sync += left.eq(left - 1)
            with m.If(left == 0):
                m.d.sync += [ends.eq(0), there.eq(1)]
        return loads, image_there

    def _choose_form(self, command: dict[str, Value]) -> tuple[Value, Value]:
        """Return the number of the form that a command selects, and an error, as two signals.

        The method is for fixed tables. The error is a `RunError`, 0 for a valid command. `command`
        has the words of the command by name.
        """
        length = self.shape.effective_length(command["length"])
        form = find_form(self.shape.choices.served, self._mode_number(command), length)
        unknown = command["mode"] >= self.shape.choices.n_modes
        return form, Mux(unknown, RunError.MODE, self._choice_error(command))

    def _choice_error(self, command: dict[str, Value]) -> Value:
        """Return a signal with the error in the operator, length or root of a command.

        The error is a `RunError`, 0 if these words are valid; the mode is not checked. With
        loadable tables the root is not checked either, because `_find_entry` does this. `command`
        has the words of the command by name.
        """
        shape = self.shape
        mode = self._mode_number(command)
        error: Value = NO_ERROR
        if shape.operation_bits:
            known = constant_at(shape.operator_counts, mode)
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

    def _mode_number(self, command: dict[str, Value]) -> Value:
        """Return the word ``mode`` of a command, without upper bits that no valid mode needs.

        `command` has the words of the command by name.
        """
        return command["mode"][: max(self.shape.mode_bits, 1)]

    def _store_choices(
        self, m: Module, command: dict[str, Value], put: Value, odd: Value
    ) -> tuple[Value, Value]:
        """Add the registers for two waiting commands, and drive the outputs for their runs.

        One register is for commands with odd numbers, the other for commands with even numbers.
        When `put` is high, the command is stored in the register that `odd` selects. It stays there
        until its run begins; its form and root are then copied for the unloaders. `command` has its
        words by name, with the form in place of the mode.

        Return two signals: the tag of the run under way, and a bit that is high if this run is a
        barrier, which moves no words through the core.
        """
        begins, sections = self.input_value("run_begins"), self.shape.facts.sections
        section = Signal(sections.section_number_bits, name="next_section")
        following = section[0]
        # `tag` follows one cycle after the begin: the run before may end in the first cycle of a
        # run, and its status needs its own tag.
        tag, begun = Signal(COMMAND_BITS, name="run_tag"), Signal(name="has_begun")
        m.d.sync += begun.eq(begins)
        with m.If(begins):
            m.d.sync += self.load_valid.bit_select(following, 1).eq(0)
            m.d.sync += section.eq(sections.next_section(section))
        with m.If(put):
            m.d.sync += self.load_valid.bit_select(odd, 1).eq(1)
        idle: Value = Const(0)
        waits: Value = Const(0)
        for name, bits in self.shape.stored_bits.items():
            if not bits:
                continue
            both = Signal(2 * bits, name=f"{name}_under_way", reset_less=True)
            for k, chosen in enumerate((~odd, odd)):
                with m.If(put & chosen):
                    m.d.sync += both.word_select(k, bits).eq(command[name][:bits])
            chosen = both.word_select(following, bits)
            if name == "tag":
                with m.If(begun):
                    m.d.sync += tag.eq(both.word_select(~following, bits))
                continue
            if name == "mode" and self.shape.barrier:
                waits, idle = chosen == self.shape.n_forms - 1, Signal(name="run_idle")
                m.d.sync += self.barrier.eq(waits)
                with m.If(begins):
                    m.d.sync += idle.eq(waits)
            if name == "length":
                # A register breaks the path from `run_begins` through `wanted` back to the control.
                # Its delay does no harm: no run begins one cycle after a command or another run.
                last = (chosen - 1)[: len(self.wanted) - 1]
                m.d.sync += self.wanted.eq(
                    Mux(waits, Const(1 << len(last)), Cat(last, chosen.any()))
                )
                continue
            m.d.comb += getattr(self, name).eq(chosen)
            if name in ("mode", "root"):
                m.d.comb += getattr(self, f"load_{name}").eq(both)
                if f"unload_{name}" in self.signature.members:
                    kept = getattr(self, f"unload_{name}").word_select(section, bits)
                    with m.If(begins):
                        m.d.sync += kept.eq(chosen)
        return tag, idle

    def _send_statuses(self, m: Module, status: Value, refused: Value) -> None:
        """Add a queue of two statuses, and send them on the status stream.

        `status` is put into the queue at the end of a run, or when a command is `refused`.
        `may_begin` is high only while the queue has room for the status of a further run.
        """
        promised, there = Signal(2, name="promised"), Signal(2, name="statuses")
        into, out = Signal(name="into"), Signal(name="out")
        beat = Signal(range(len(STATUS_WORDS)), name="status_beat")
        kept = [Signal(len(status), name=f"status_{k}", reset_less=True) for k in range(2)]
        comes, leaves = Signal(name="comes"), Signal(name="leaves")
        shown = Mux(out, kept[1], kept[0])
        tag, rest = shown[:COMMAND_BITS], shown[COMMAND_BITS:]
        words = [tag, rest[:ERROR_BITS], rest[ERROR_BITS:]]
        moves = self.status_tvalid & self.input_value("status_tready")
        m.d.comb += [
            comes.eq(self.input_value("run_over") | refused),
            leaves.eq(moves & self.status_tlast),
            self.status_tvalid.eq(there != 0),
            self.status_tlast.eq(beat == len(STATUS_WORDS) - 1),
            self.status_tdata.eq(choose_value(words, beat)),
        ]
        begins = self.input_value("run_begins") | refused
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
