"""Claims about loaders: each accepted word is written once, at its location.

A loader takes the packets of a message from the user and writes them into the memories of a node.
Each memory is divided into *sections*, and consecutive messages use them in turn. A *harness* is
Verilog around the loader, with a model and the claims. The *model* counts the words and packets of
the message that is being loaded, and has the faults and lengths of waiting messages in a queue. The
claims say that the loader has the same counts, and that the written section is never that of the
run under way. So no later message overwrites the words of a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....proof.model import HarnessBuilder, select_by_value, vector_field
from .engines import (
    add_runs,
    add_word_position,
    address_expression,
    field_expression,
    full_flit_keeps,
    has_packets,
    last_packet,
    planned_length,
    row_expression,
    section_fact,
    section_of,
)  # fmt: skip

if TYPE_CHECKING:
    from ....proof.solver import Harness
    from ....verilog.design import Design
    from ..engine import EngineShape

__all__ = ["loader_harness"]


def loader_harness(design: Design, shape: EngineShape) -> Harness:
    """Return the proof harness of a loader, which writes packets from the user into memories.

    A harness is Verilog around the module, with a model of its behaviour and the statements to
    prove.

    Parameters
    ----------
    design : Design
        The emitted Verilog.
    shape : EngineShape
        Parameters of the loaders.
    """
    constants = ["sends", "position"] + ["row"] * (not shape.rom_address_bits)
    constants += ["own_last", "lengths"] * shape.has_lengths
    model = HarnessBuilder(design, "loader", constants=constants)
    add_runs(model, shape.facts.sections, begins_if="loaded")
    _add_message(model, shape)
    _add_position(model, shape)
    _add_faults(model, shape)
    _add_queue(model, shape)
    _claim_writes(model, shape)
    return model.make_harness(
        "every accepted word is written once, at the address of its row, never into memory that "
        "a run uses; a message waits for its run, with its errors",
        cycles=4,
    )


def _add_message(model: HarnessBuilder, shape: EngineShape) -> None:
    """Add signals to the proof harness for the message being loaded: its number, form, and root.

    The claims say that the loader gives the message the same number, and accepts words only while
    the memory has room and a command allows it. `model` is the harness, and `shape` has the
    parameters of all loaders.
    """
    facts, sections = shape.facts, shape.facts.sections
    bits = sections.message_number_bits
    model.add_register("filling", "filling + ends", bits)
    known = {"load_mode": facts.form_bits, "load_root": facts.root_bits}
    valid = "1'b1"
    if model.has_name("load_valid"):
        valid = "load_valid[filling[0]]"
        for odd, now, then in model.vector_fields("load_valid", 2, 1):
            begins = f"$past(run_begins && begun[0] == {odd})"
            model.assume(f"!steady || !{then} || {now} || {begins}")
        for name in filter(model.has_name, known):
            for odd, now, then in model.vector_fields(name, 2, known[name]):
                stays = f"$past(load_valid[{odd}]) && load_valid[{odd}]"
                model.assume(f"!steady || !({stays}) || {now} == {then}")
    for name, width in known.items():
        value = section_fact(model, name, "filling[0]", width)
        # Without a command the value is arbitrary, and no word is accepted.
        model.add_wire(name.removeprefix("load_"), f"{valid} ? {value} : 0", max(width, 1))
    model.assume(f"mode < {len(shape.packets)}" if len(shape.packets) > 1 else "1")
    model.add_wire("waiting", f"{bits}'(filling - begun)", bits)
    room, counts = "waiting < 2", ""
    if sections.has_two_sections:
        room = "2'(filling - ended) != 2"
        counts = " && occupied == 2'(filling - ended) && occupied < 3"
    elif model.has_name("load_valid"):
        model.assume("!steady || !$past(run_begins) || !load_valid[$past(begun[0])]")
    model.add_wire("may", f"{room} && {valid}")
    model.add_wire("takes_part", has_packets(shape, "sends", "mode", "root"))
    model.add_wire("accepted", "tvalid && tready")
    model.claim_all({
        "accepts_while_there_is_room": "tready == (may && takes_part)",
        "counts_messages": f"number == filling{counts}",
        "counts_what_waits": f"waiting < 3 && {bits}'(begun - ended) < 2",
    })  # fmt: skip


def _add_position(model: HarnessBuilder, shape: EngineShape) -> None:
    """Add counters to the harness: the number of the next word in its packet, and of the packet.

    The claims say that the counters of the loader have the same values. Words beyond the longest
    packet are not counted. `model` is the proof harness, and `shape` has the parameters of all
    loaders.
    """
    most, counts = shape.word_shape.most, last_packet(shape)
    model.add_wire("beyond", f"at == {most}")
    model.add_register(
        "at", "accepted ? (tlast ? 0 : beyond ? at : at + 1) : at", most.bit_length()
    )
    model.add_wire("ends_packet", "accepted && tlast")
    model.add_wire("last_packet", f"its_packet == {counts}")
    model.add_register(
        "its_packet",
        "ends_packet ? (last_packet ? 0 : its_packet + 1) : its_packet",
        max(shape.packet_bits, 1),
    )
    model.add_wire("ends_message", "ends_packet && last_packet")
    # The message of a node that sends nothing is complete at once.
    model.add_wire("ends", "ends_message || (may && !takes_part)")
    add_word_position(model, shape, "at", "mode", valid="!beyond")
    claims = {
        "counts_words": "beyond || index == at",
        "knows_what_is_beyond": f"full == beyond && at <= {most}",
        "keeps_to_the_message": "(at == 0 && its_packet == 0) || (may && takes_part)",
        "keeps_to_the_packets": f"!may || its_packet <= {counts}",
        "knows_the_last_word": f"at_last == (index == {most - 1})",
    }
    if model.has_name("packet"):
        claims["counts_packets"] = "packet == its_packet"
    model.claim_all(claims)


def _add_faults(model: HarnessBuilder, shape: EngineShape) -> None:
    """Add signals to the harness for the two faults of a message: wrong length, wrong destination.

    The claims say that the loader finds the same faults. `model` is the proof harness, and `shape`
    has the parameters of all loaders.
    """
    most, bits, full = shape.word_shape.most, shape.flit_bits, full_flit_keeps(shape)
    last, torn = "at", "0"
    if bits:
        flits = [f"tkeep == {keep} ? {bits}'d{k}" for k, keep in enumerate(full)]
        last = f"{{at, {' : '.join(flits)} : {bits}'d0}}"
        some = " || ".join(f"tkeep == {keep}" for keep in full[:-1])
        torn = f"tkeep != {full[-1]} && !(tlast && ({some}))"
    last_bits = most.bit_length() + bits
    model.add_wire("last_flit_at", last, last_bits)
    model.add_register(
        "first_at", "ends_packet && its_packet == 0 ? last_flit_at : first_at", last_bits
    )
    planned = planned_length(shape, "tdest") if shape.has_lengths else str(shape.most_flits - 1)
    wrong = f"last_flit_at != {planned}"
    if shape.any_length:
        wrong = (
            f"last_flit_at >= {shape.most_flits} || (its_packet != 0 && last_flit_at != first_at)"
        )
        missing = f" || {planned} >> {shape.planned_length_bits - 1}" * shape.has_lengths
        wrong = f"({wrong}{missing})"
    model.add_wire(
        "bad_length",
        f"bad_length_so_far || (accepted && ((!tlast && at == {most - 1}) || {torn})) || "
        f"(ends_packet && {wrong})",
    )
    model.add_wire("bad_destination", f"bad_destination_so_far || {_bad_destination(model, shape)}")
    for name in ("bad_length", "bad_destination"):
        model.add_register(
            f"{name}_so_far", f"ends_message ? 0 : accepted ? {name} : {name}_so_far"
        )
    model.claim_all({
        "calls_what_is_too_long_wrong": "!beyond || bad_length_so_far",
        "knows_what_is_wrong":
            "wrong_so_far == {bad_destination_so_far, bad_length_so_far}",
    })  # fmt: skip
    if model.has_name("first_length"):
        model.claim(
            "knows_the_first_length",
            "its_packet == 0 || bad_length_so_far || first_length == first_at",
        )


def _bad_destination(model: HarnessBuilder, shape: EngineShape) -> str:
    """Return a Verilog expression: true with the last word of a packet with a wrong destination.

    A destination is wrong if it does not exist, or if an earlier packet of the message had it.
    `model` is the proof harness, and `shape` has the parameters of all loaders.
    """
    if not model.has_name("tdest"):
        return "1'b0"
    # A destination with all bits set needs one bit more to be less than the number of them.
    wrong = f"{{1'b0, tdest}} >= {select_by_value(shape.packet_counts, 'mode')}"
    if shape.packet_bits:
        # A destination out of range may be taken for another one, as its message is faulty anyway.
        most, size, at = max(shape.packet_counts), 1 << shape.packet_bits, shape.packet_bits - 1
        seen = f"seen | ({size}'d1 << tdest[{at}:0])"
        model.add_register("seen", f"ends_message ? 0 : ends_packet ? {seen} : seen", size)
        model.claim("knows_its_destinations", f"sent == seen[{most - 1}:0]")
        wrong += f" || seen[tdest[{at}:0]]"
    return f"(ends_packet && {select_by_value(shape.has_destinations, 'mode')} && ({wrong}))"


def _add_queue(model: HarnessBuilder, shape: EngineShape) -> None:
    """Add a queue to the harness with length and faults of each message that waits for its run.

    The claims say that the outputs of the loader describe the first message of this queue. `model`
    is the proof harness, and `shape` has the parameters of all loaders.
    """
    bits, length = 3 + shape.length_bits, ""
    if shape.length_bits:
        length = f"{shape.length_bits}'(its_packet == 0 ? last_flit_at : first_at), "
    faults = "takes_part, takes_part && bad_destination, takes_part && bad_length"
    model.add_wire("known", f"{{{length}{faults}}}", bits)
    model.add_wire("place", "waiting - run_begins", shape.facts.sections.message_number_bits)
    model.add_register(
        "known_0", "ends && place == 0 ? known : run_begins ? known_1 : known_0", bits
    )
    model.add_register("known_1", "ends && place == 1 ? known : known_1", bits)
    claims = {
        "loaded_while_a_message_waits": "loaded == (waiting != 0)",
        "tells_what_is_wrong": "!loaded || bad == known_0[1:0]",
        "knows_whether_two_wait": "both == (waiting == 2)",
        "holds_the_message_behind": f"!both || ({_equals_model('second', 'known_1', shape)})",
        "holds_the_first_message": f"!loaded || ({_equals_model('first', 'known_0', shape)})",
    }
    if shape.has_idle_senders:
        claims["tells_whether_it_sends"] = "!loaded || counts == known_0[2]"
    if shape.length_bits:
        claims["tells_the_length"] = (
            "!loaded || !known_0[2] || known_0[0] || length == known_0 >> 3"
        )
    if model.has_name("load_valid"):
        claims["waits_for_its_command"] = (
            "(waiting == 0 || load_valid[begun[0]]) && (waiting != 2 || load_valid == 3)"
        )
    model.claim_all(claims)


def _equals_model(register: str, known: str, shape: EngineShape) -> str:
    """Return a Verilog expression: true if loader and model agree about a waiting message.

    They must agree in the faults and the length of the message, except that the length of a message
    with a wrong length does not matter. The loader has these facts in the register `register`, the
    model (a part of the proof harness) in the register `known`. `shape` has the width of the
    length.
    """
    same = f"{register}[2:0] == {known}[2:0]"
    if shape.length_bits:
        same += f" && (!{known}[2] || {known}[0] || {register} >> 3 == {known} >> 3)"
    return same


def _claim_writes(model: HarnessBuilder, shape: EngineShape) -> None:
    """Claim that the loader writes each accepted word, and nothing else, one cycle later.

    Further claims say that the memory and the address are those of the packet table, which has the
    location of each block, and that no run uses this section (part) of the memory. `model` is the
    proof harness, and `shape` has the parameters of all loaders.
    """
    sections, table = shape.facts.sections, shape.packet_table
    model.add_wire("counts_word", "accepted && !beyond")
    row = row_expression(table, "tdest" if model.has_name("tdest") else "0", "mode")
    model.add_wire("its_row", row, max(table.address_bits, 1))
    model.add_wire("row_before", "$past(its_row)", max(table.address_bits, 1))
    model.add_wire("mode_before", "$past(mode)", max(shape.facts.form_bits, 1))
    bank, base = (
        field_expression(table, name, "row_before", "row", "mode_before")
        for name in ("bank", "base")
    )
    claims = {
        "writes_what_it_accepts_once": "write_enable == (steady && $past(counts_word))",
        "writes_the_word": (
            f"!write_enable || write_data == $past(tdata[{shape.memory_port.width - 1}:0])"
        ),
        "writes_to_the_right_bank": f"!write_enable || write_bank == {bank}",
        "writes_to_the_right_address": (
            "!write_enable || write_address == "
            f"{address_expression(shape, base, '$past(word_within)')}"
        ),
        "writes_into_its_section": "!write_enable || write_section == $past(filling)",
        "writes_what_no_run_reads": (
            "!write_enable || !under_way || "
            f"{section_of('write_section', sections)} != {section_of('ended', sections)}"
        ),
        "writes_into_the_two_next_runs": (
            f"!write_enable || {sections.message_number_bits}'(write_section - begun) < 2"
        ),
    }
    if shape.rom_address_bits:
        claims["asks_for_the_row_of_the_word"] = "!counts_word || key == its_row"
    if shape.keeps:
        mine = "1'b1"
        if model.has_name("tdest"):
            own = vector_field("position", "mode", shape.facts.position_bits)
            mine = f"(!{select_by_value(shape.has_destinations, 'mode')} || tdest == {own})"
        claims["keeps_its_own_words"] = f"own_enable == (steady && $past(counts_word && {mine}))"
        claims["keeps_them_in_their_order"] = "!own_enable || own_index == $past(at)"
    model.claim_all(claims)
