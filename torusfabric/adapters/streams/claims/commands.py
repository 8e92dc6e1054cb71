"""Claims about `Commands`: each command gets one status, in order, and the run that it requests.

A *harness* is Verilog around the module, with the *claims*: statements that are proved. Its *model*
follows one arbitrary command, from its last word to the last word of its status. The model counts
the earlier commands whose statuses have not been sent. This number and the numbers of commands in
each state determine the state of the followed command::

    taken        received, neither *put* (stored until its run begins) nor refused
    waiting      put; its run has not begun
    running      its run is under way
    shown        its status is in the queue of statuses
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ....proof.model import HarnessBuilder, is_stable, select_by_value, vector_field
from ....rtl.run_choices import RunError
from ..ports import COMMAND_BITS, COMMAND_WORDS, STATUS_WORDS
from .engines import section_of

if TYPE_CHECKING:
    from ....proof.solver import Harness
    from ....verilog.design import Design
    from ..commands import CommandShape

__all__ = ["commands_harness"]


def commands_harness(design: Design, shape: CommandShape) -> Harness:
    """Return the proof harness of `Commands`, the module that takes a command for each run.

    A harness is Verilog around the module, with a model of its behaviour and the statements to
    prove.

    Parameters
    ----------
    design : Design
        The emitted Verilog.
    shape : CommandShape
        Parameters of the module.
    """
    model = HarnessBuilder(design, "commands")
    # Runs. One may begin in the cycle before `run_over` reports the end of another.
    model.add_register("begun", "begun + run_begins", 2)
    model.add_register("running", "running + run_begins - run_over", 2)
    next_is_there = "load_valid[begun[0]] && $past(load_valid)[begun[0]]"
    model.assume(f"!run_begins || (may_begin && !(steady && $past(run_begins)) && {next_is_there})")
    model.assume("!run_over || running != 0")
    model.assume("running != 2 || run_over")
    model.assume("!(steady && $past(run_begins)) || running == 2 || !run_over")
    if shape.barrier:
        model.assume("!run_begins || running == 0 || run_over || (!barrier && !run_idle)")
    model.claim("knows_that_a_run_began", "has_begun == (steady && $past(run_begins))")
    _add_collection(model)
    _add_counts(model, shape)
    _add_followed_command(model, shape)
    _claim_refusals(model, shape)
    _claim_statuses(model)
    _claim_stable_choices(model, shape)
    return model.make_harness(
        "every command is answered by one status, in order, and its run has the choices of the "
        "command",
        cycles=2,
    )


def _add_collection(model: HarnessBuilder) -> None:
    """Add registers to the proof harness: the words of the command that arrives, and their count.

    The claims say that `Commands` has stored the same words and the same count in its own
    registers.
    """
    model.add_wire("beat", "tvalid && tready")
    model.add_wire("accepted", "beat && tlast")
    model.add_wire("more_beats", f"beats + 3'(beat && beats <= {len(COMMAND_WORDS)})", 3)
    model.add_register("beats", "accepted ? 0 : more_beats", 3)
    # Words of the last packet that was received.
    model.add_register("its_beats", "accepted ? more_beats : its_beats", 3)
    for k, name in enumerate(COMMAND_WORDS):
        fresh = " : beat && beats == 0 ? 0" if name == "tag" else ""
        now = f"beat && beats == {k} ? tdata{fresh} : word_{name}"
        model.add_wire(f"now_{name}", now, COMMAND_BITS)
        model.add_register(f"word_{name}", f"now_{name}", COMMAND_BITS)
    same = [f"command_{name} == word_{name}" for name in COMMAND_WORDS]
    model.claim_all({
        "takes_one_command_at_a_time": "tready == !there",
        "counts_beats": "there || number == beats",
        "collects_beats": " && ".join(same),
        "knows_whole_commands": f"number == 0 || whole == (number == {len(COMMAND_WORDS)})",
        "knows_how_many_beats_there_were": "!there || number == its_beats",
        "collects_nothing_beside": "!there || beats == 0",
    })  # fmt: skip


def _add_counts(model: HarnessBuilder, shape: CommandShape) -> None:
    """Add registers to the proof harness that count the commands in each state, with claims.

    The states are: received, waiting for its run, run under way, status in the queue. The claims
    say that `Commands` counts the same. `shape` has the parameters of `Commands`.
    """
    section = section_of("begun", shape.facts.sections)
    model.add_wire("put", "there && fine && waiting != 2")
    model.add_wire("refused", "there && !fine && waiting == 0 && running == 0 && may_begin")
    model.add_wire("resolved", "refused || run_over")
    model.add_wire("leaves", "status_tvalid && status_tready && status_tlast")
    model.add_register("taken", "accepted ? 1 : put || refused ? 0 : taken")
    model.add_register("waiting", "waiting + put - run_begins", 2)
    model.add_register("shown", "shown + resolved - leaves", 2)
    model.claim_all({
        "counts_commands": "there == taken && waiting < 3 && shown < 3",
        "counts_runs": f"under_way == 3'(waiting) + running && next_section == {section} && "
                       "odd == (begun[0] ^ waiting[0]) && running < 3",
        "keeps_room_for_statuses": "promised == 3'(shown) + running && promised < 3",
        "begins_if_there_is_room": "!steady || may_begin == (promised != 2)",
        "holds_the_commands_that_wait":
            "load_valid[begun[0]] == (waiting != 0) && load_valid[!begun[0]] == (waiting == 2)",
        "counts_statuses": "statuses == shown && into == (out ^ shown[0])",
    })  # fmt: skip


def _add_followed_command(model: HarnessBuilder, shape: CommandShape) -> None:
    """Add registers to the proof harness that follow one command from its last word to its status.

    The solver chooses the command, so that the claims hold for every command. The registers have
    the words of this command, the number of commands ahead of it, and its status. `model` is the
    harness, and `shape` has the parameters of `Commands`.
    """
    model.add_free_value("follow")
    model.add_wire("begins_here", "accepted && follow && !followed")
    model.add_wire("first", "followed && ahead == 0")
    model.add_register("followed", "begins_here || (followed && !(first && leaves))")
    model.add_wire("outstanding", "taken + waiting + running + shown", 3)
    model.add_register("ahead", "begins_here ? outstanding - leaves : ahead - leaves", 3)
    for name in COMMAND_WORDS:
        model.add_register(f"its_{name}", f"begins_here ? now_{name} : its_{name}", COMMAND_BITS)
    model.add_wire("its_form", _followed_form(shape), 32)
    model.add_wire("is_taken", "followed && ahead == shown + running + waiting")
    for k in range(2):
        model.add_wire(
            f"waits_{k}",
            f"followed && !is_taken && ahead == shown + running + {k} && waiting > {k}",
        )
    model.add_wire("its_newest", "followed && running != 0 && ahead == shown + running - 1")
    model.add_wire("runs", "followed && running != 0 && ahead == shown")
    barrier = f"its_form == {shape.n_forms - 1}" if shape.barrier else "1'b0"
    model.add_wire("its_status", "runs && run_over || is_taken && refused")
    model.add_register("its_error", "its_status ? (run_over ? error : refusal) : its_error", 4)
    model.add_register(
        "its_cycles",
        f"its_status ? (run_over && error == 0 && !({barrier}) ? cycles : 0) : its_cycles", 32,
    )  # fmt: skip
    model.add_wire("is_shown", "followed && ahead < shown")
    _claim_followed_command(model, shape)


def _followed_form(shape: CommandShape) -> str:
    """Return a Verilog expression for the form that mode and length of the followed command select.

    The followed command is the one that the solver has chosen. Length 0 selects the form for the
    longest messages. `shape` has the forms of each mode.
    """
    of_modes = []
    for ranges in shape.choices.served:
        cases = [
            f"its_length != 0 && its_length < {following.start} ? {each.form}"
            for each, following in pairwise(ranges)
        ]
        of_modes.append(f"({' : '.join([*cases, str(ranges[-1].form)])})")
    *others, last = of_modes
    cases = [f"its_mode == {k} ? {of_mode}" for k, of_mode in enumerate(others)]
    return " : ".join([*cases, last])


def _model_signal(name: str) -> str:
    """Return the name of the signal of the proof harness for one word of the followed command.

    The followed command is the one that the solver has chosen, and `name` is the name of a word of
    it. For ``tag`` the signal is ``its_tag``; for ``mode`` it is ``its_form``, because `Commands`
    stores the form in place of the mode.
    """
    return "its_form" if name == "mode" else f"its_{name}"


def _claim_followed_command(model: HarnessBuilder, shape: CommandShape) -> None:
    """Claim that `Commands` holds the words of the followed command from arrival to run, unchanged.

    The followed command is the one that the solver has chosen. `model` is the proof harness, and
    `shape` has the parameters of `Commands`.
    """
    bits = {name: width for name, width in shape.stored_bits.items() if width}
    held = {"mode": "load_mode", "root": "load_root"}
    claims = {
        "is_somewhere": (
            "!followed || is_taken || waits_0 || waits_1 || runs || its_newest || is_shown"
        ),
        "is_ahead_of_what_came_later": "!followed || ahead < outstanding",
        "takes_the_command": "!is_taken || (taken && "
        + " && ".join(f"command_{name} == its_{name}" for name in COMMAND_WORDS)
        + ")",
        "knows_its_form": (
            "!is_taken || !fine || form_d1 == its_form" if model.has_name("form_d1") else "1'b1"
        ),
        "runs_in_a_mode_that_there_is": (
            "!(waits_0 || waits_1 || runs || its_newest) || "
            f"its_mode < {shape.choices.n_modes} && its_form < {shape.n_forms}"
        ),
        "runs_under_its_tag": "!runs || (has_begun && running == 1) || run_tag == its_tag",
        "begins_under_its_tag": (
            "!(has_begun && its_newest) || "
            f"{vector_field('tag_under_way', '!begun[0]', 32)} == its_tag"
        ),
    }
    for k in range(2):
        parity = "begun[0]" if k == 0 else "!begun[0]"
        for name, width in bits.items():
            register = held.get(name, f"{name}_under_way")
            claims[f"keeps_its_{name}_{k}"] = (
                f"!waits_{k} || {vector_field(register, parity, width)} == "
                f"{width}'({_model_signal(name)})"
            )
    if "run_idle" in model.widths:
        claims["follows_no_barrier_at_once"] = (
            f"!runs || its_newest || (!run_idle && its_form != {shape.n_forms - 1})"
        )
        claims["knows_barriers"] = f"!its_newest || run_idle == (its_form == {shape.n_forms - 1})"
    claims |= {
        f"runs_with_its_{name}": (
            f"!(run_begins && waits_0) || {name} == {bits[name]}'({_model_signal(name)})"
        )
        for name in ("mode", "root", "operation")
        if name in bits
    }
    last_bits = model.port_width("wanted") - 1
    demanded = f"{{{bits['length']}'(its_length) != 0, {last_bits}'(its_length - 1)}}"
    if model.has_name("barrier"):
        barrier = shape.n_forms - 1
        claims["tells_barriers"] = f"!(run_begins && waits_0) || barrier == (its_form == {barrier})"
        demanded = f"(its_form == {barrier} ? {1 << last_bits} : {demanded})"
    claims["asks_for_its_length"] = f"!(run_begins && waits_0) || wanted == {demanded}"
    model.claim_all(claims)


def _claim_refusals(model: HarnessBuilder, shape: CommandShape) -> None:
    """Claim that `Commands` refuses exactly the invalid commands, each with a right error number.

    A command is invalid if its mode, root, length, operator or number of words is wrong. `model` is
    the proof harness, and `shape` has the parameters of `Commands`.
    """
    modes = shape.choices.n_modes
    mode = f"command_mode[{max(shape.mode_bits, 1) - 1}:0]"
    model.add_wire("bad_mode", f"command_mode >= {modes}")
    roots = select_by_value([count or 0 for count in shape.choices.roots], mode)
    model.add_wire("bad_root", f"{roots} != 0 && command_root >= {roots}")
    fits = f"command_length <= {shape.most}"
    if not shape.choices.lengths:
        fits = f"command_length == 0 || command_length == {shape.most}"
    model.add_wire("bad_length", f"!({fits})")
    known = select_by_value(shape.operator_counts, mode)
    bad_operation = f"{known} != 0 && command_operation >= {known}"
    model.add_wire("bad_operation", bad_operation if shape.operation_bits else "1'b0")
    model.add_wire("bad_words", f"its_beats != {len(COMMAND_WORDS)}")
    model.add_wire("fine", "!bad_mode && !bad_root && !bad_length && !bad_operation && !bad_words")
    kinds = {"root": RunError.ROOT, "length": RunError.LENGTH, "operation": RunError.OPERATION}
    allowed = [f"refusal == {int(RunError.COMMAND)} && bad_words"]
    allowed += [f"refusal == {int(RunError.MODE)} && bad_mode && !bad_words"]
    allowed += [
        f"refusal == {int(error)} && bad_{name} && !bad_mode && !bad_words"
        for name, error in kinds.items()
    ]
    model.claim_all({
        "refuses_what_there_is_not": "!there || (refusal == 0) == fine",
        "says_why_it_refuses": f"!there || fine || {' || '.join(f'({each})' for each in allowed)}",
    })  # fmt: skip


def _claim_statuses(model: HarnessBuilder) -> None:
    """Claim that each status is sent as a packet of AXI-Stream with tag, error and cycles.

    `model` is the proof harness to which the claims are added.
    """
    last = len(STATUS_WORDS) - 1
    moves = "status_tvalid && status_tready"
    model.add_register("words", f"{moves} ? (words == {last} ? 0 : words + 1) : words", 2)
    waits = "status_tvalid && !status_tready"
    entry = "{its_cycles, its_error, its_tag}"
    said = "words == 0 ? its_tag : words == 1 ? its_error : its_cycles"
    model.claim_all({
        "status_tvalid_stays_until_tready": f"!steady || !$past({waits}) || status_tvalid",
        "status_is_stable": is_stable("{status_tlast, status_tdata}", waits),
        "shows_a_status_while_there_is_one": "status_tvalid == (shown != 0)",
        "ends_a_status_after_its_words": f"status_tlast == (words == {last})",
        "counts_words": f"status_beat == words && words <= {last} && (shown != 0 || words == 0)",
        "keeps_the_first_status":
            f"!(is_shown && ahead == 0) || (out ? status_1 : status_0) == {entry}",
        "keeps_the_second_status":
            f"!(is_shown && ahead == 1) || (out ? status_0 : status_1) == {entry}",
        "tells_what_became_of_it":
            f"!(is_shown && ahead == 0) || status_tdata == ({said})",
    })  # fmt: skip


def _claim_stable_choices(model: HarnessBuilder, shape: CommandShape) -> None:
    """Claim that `Commands` keeps form and root of a run at its outputs while nodes use them.

    Nodes use form and root while they load the message of the run, and while they unload its
    received words. `model` is the proof harness, and `shape` has the parameters of `Commands`.
    """
    bits = {"mode": shape.facts.form_bits, "root": shape.facts.root_bits}
    sections = shape.facts.sections
    begun = section_of("$past(begun)", sections)
    for name, width in bits.items():
        if not width:
            continue
        for odd, now, then in model.vector_fields(f"load_{name}", 2, width):
            model.claim(
                f"keeps_{name}_while_it_is_loaded_{odd}",
                f"!steady || !load_valid[{odd}] || !$past(load_valid[{odd}]) || {now} == {then}",
            )
        for section, now, then in model.vector_fields(f"unload_{name}", sections.n_sections, width):
            model.claim(
                f"keeps_{name}_while_it_is_unloaded_{section}",
                f"!steady || {now} == "
                f"($past(run_begins) && {begun} == {section} ? $past({name}) : {then})",
            )
    for odd in range(2):
        begins = f"$past(run_begins && begun[0] == {odd})"
        model.claim_all({
            f"waits_for_its_run_{odd}":
                f"!steady || !$past(load_valid[{odd}]) || load_valid[{odd}] || {begins}",
            f"leaves_with_its_run_{odd}": f"!steady || !{begins} || !load_valid[{odd}]",
        })  # fmt: skip
    if shape.facts.form_bits:
        forms, width = shape.n_forms, shape.facts.form_bits
        known = [f"(!load_valid[{odd}] || {vector_field('load_mode', str(odd), width)} < {forms})"
                 for odd in range(2)]  # fmt: skip
        known += [f"{vector_field('unload_mode', str(section), width)} < {forms}"
                  for section in range(sections.n_sections)]  # fmt: skip
        model.claim("knows_the_modes", " && ".join(known))
