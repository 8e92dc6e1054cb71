"""What is claimed of loaders: every word that is accepted is written once, to its place.

The model counts the words and packets of the message that is loaded, and keeps in a queue what is
known of those that wait for their run. The section of the memories that is written is never the
one of a run under way, so that a message that waits stays what it is, whatever comes behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import Model, by_value, within
from .runs import (
    add_runs,
    add_words,
    base_of,
    fact,
    full_beats,
    key_of,
    section_of,
    takes_part,
)  # fmt: skip

if TYPE_CHECKING:
    from ...rtl.streams.shapes import LoaderShape
    from ...verilog.design import Design
    from ..solver import Harness

__all__ = ["loader_harness"]


def loader_harness(design: Design, shape: LoaderShape) -> Harness:
    """The harness around a loader."""
    model = Model(design, "loader", constants=("sends", "position"))
    add_runs(model, shape.facts.sections, begins_if="loaded")
    _add_message(model, shape)
    _add_position(model, shape)
    _add_faults(model, shape)
    _add_queue(model, shape)
    _claim_writes(model, shape)
    return model.harness(
        "every word that is accepted is written once, where its row says, never into what a run "
        "uses; a message waits for its run, with what is wrong with it",
        cycles=4,
    )


def _add_message(model: Model, shape: LoaderShape) -> None:
    """The message that is loaded, and whether anything of it is accepted now."""
    facts, sections = shape.facts, shape.facts.sections
    bits = sections.number_bits
    model.register("filling", "filling + ends", bits)
    known = {"load_mode": facts.form_bits, "load_root": facts.root_bits}
    valid = "1'b1"
    if model.has("load_valid"):
        valid = "load_valid[filling[0]]"
        for odd, now, then in model.parts("load_valid", 2, 1):
            begins = f"$past(run_begins && begun[0] == {odd})"
            model.assume(f"!steady || !{then} || {now} || {begins}")
        for name in filter(model.has, known):
            for odd, now, then in model.parts(name, 2, known[name]):
                stays = f"$past(load_valid[{odd}]) && load_valid[{odd}]"
                model.assume(f"!steady || !({stays}) || {now} == {then}")
    for name, width in known.items():
        value = fact(model, name, "filling[0]", width)
        # Without a command anything may be there; no word is accepted then.
        model.wire(name.removeprefix("load_"), f"{valid} ? {value} : 0", max(width, 1))
    model.assume(f"mode < {len(shape.packets)}" if len(shape.packets) > 1 else "1")
    if shape.position_bits:
        model.wire("own", within("position", "mode", facts.position_bits), facts.position_bits)
    model.wire("waiting", f"{bits}'(filling - begun)", bits)
    room, counted = "waiting < 2", ""
    if sections.two:
        room = "2'(filling - ended) != 2"
        counted = " && occupied == 2'(filling - ended) && occupied < 3"
    elif model.has("load_valid"):
        model.assume("!steady || !$past(run_begins) || !load_valid[$past(begun[0])]")
    model.wire("may", f"{room} && {valid}")
    model.wire("sends_now", takes_part(shape, "sends", "mode", "root"))
    model.wire("beat", "tvalid && tready")
    model.claims({
        "accepts_while_there_is_room": "tready == (may && sends_now)",
        "counts_messages": f"section == filling{counted}",
        "counts_what_waits": f"waiting < 3 && {bits}'(begun - ended) < 2",
    })  # fmt: skip


def _add_position(model: Model, shape: LoaderShape) -> None:
    """Which word of which packet comes next; beyond the longest packet words are not counted."""
    most, packets = shape.words.most, shape.packets
    bits = max((max(packets) - 1).bit_length(), 1)
    model.wire("beyond", f"at == {most}")
    model.register("at", "beat ? (tlast ? 0 : beyond ? at : at + 1) : at", most.bit_length())
    model.wire("ends_packet", "beat && tlast")
    model.wire("last_packet", f"number == {by_value([n - 1 for n in packets], 'mode')}")
    model.register("number", "ends_packet ? (last_packet ? 0 : number + 1) : number", bits)
    model.wire("ends_message", "ends_packet && last_packet")
    # Who sends nothing has nothing to wait for.
    model.wire("ends", "ends_message || (may && !sends_now)")
    add_words(model, shape.words, "at", "mode", valid="!beyond")
    claims = {
        "counts_words": "beyond || index == at",
        "knows_what_is_beyond": f"full == beyond && at <= {most}",
        "keeps_to_the_message": "(at == 0 && number == 0) || (may && sends_now)",
        "keeps_to_the_packets": f"!may || number <= {by_value([n - 1 for n in packets], 'mode')}",
    }
    if model.has("packet"):
        claims["counts_packets"] = "packet == number"
    if model.has("at_last"):
        claims["knows_the_last_word"] = f"at_last == (index == {most - 1})"
    model.claims(claims)
    _add_flits(model, shape)


def _add_flits(model: Model, shape: LoaderShape) -> None:
    """The number in its packet of the last flit of a beat, and whether bytes of it are missing."""
    bits, full = shape.flit_bits, full_beats(shape)
    last, torn = "at", "0"
    if bits:
        chosen = [f"tkeep == {keep} ? {bits}'d{k}" for k, keep in enumerate(full)]
        last = f"{{at, {' : '.join(chosen)} : {bits}'d0}}"
        some = " || ".join(f"tkeep == {keep}" for keep in full[:-1])
        torn = f"tkeep != {full[-1]} && !(tlast && ({some}))"
    model.wire("last_flit_at", last, shape.words.most.bit_length() + bits)
    model.wire("torn", torn)


def _add_faults(model: Model, shape: LoaderShape) -> None:
    """What is wrong with the message that is loaded, so far."""
    most, bits = shape.words.most, shape.words.most.bit_length() + shape.flit_bits
    model.register("first_at", "ends_packet && number == 0 ? last_flit_at : first_at", bits)
    wrong = f"last_flit_at != {shape.most_flits - 1}"
    if shape.any_length:
        too_long = f"last_flit_at >= {shape.most_flits}"
        wrong = f"({too_long} || (number != 0 && last_flit_at != first_at))"
    model.wire(
        "bad_length",
        f"length_so_far || (beat && ((!tlast && at == {most - 1}) || torn)) || "
        f"(ends_packet && {wrong})",
    )
    model.register("length_so_far", "ends_message ? 0 : beat ? bad_length : length_so_far")
    bad_destination = "destination_so_far"
    if shape.packet_bits:
        # A destination with all bits set needs one bit more to be less than the number of them.
        wrong = f"{{1'b0, tdest}} >= {by_value(shape.packets, 'mode')}"
        most_packets = max(shape.packets)
        if most_packets > 1:
            # One that there is not may be taken for another: its message is wrong as it is.
            bits = (most_packets - 1).bit_length()
            seen, at = 1 << bits, f"tdest[{bits - 1}:0]"
            model.register(
                "seen", f"ends_message ? 0 : ends_packet ? seen | ({seen}'d1 << {at}) : seen", seen
            )
            model.claim("knows_its_destinations", f"sent == seen[{most_packets - 1}:0]")
            wrong += f" || seen[{at}]"
        named = by_value(shape.named, "mode")
        bad_destination += f" || (ends_packet && {named} && ({wrong}))"
    model.wire("bad_destination", bad_destination)
    model.register(
        "destination_so_far", "ends_message ? 0 : beat ? bad_destination : destination_so_far"
    )
    model.claim("calls_what_is_too_long_wrong", "!beyond || length_so_far")
    model.claim("knows_what_is_wrong", "wrong_so_far == {destination_so_far, length_so_far}")
    if model.has("first_length"):
        model.claim(
            "knows_the_first_length", "number == 0 || length_so_far || first_length == first_at"
        )


def _add_queue(model: Model, shape: LoaderShape) -> None:
    """What is known of the messages that wait."""
    bits = 3 + shape.length_bits
    length = ""
    if shape.length_bits:
        first = "last_flit_at"
        if max(shape.packets) > 1:
            first = "number == 0 ? last_flit_at : first_at"
        length = f"{shape.length_bits}'({first}), "
    model.wire(
        "known",
        f"{{{length}sends_now, sends_now && bad_destination, sends_now && bad_length}}",
        bits,
    )
    model.wire("place", "waiting - run_begins", shape.facts.sections.number_bits)
    for k, moved in enumerate(("known_1", "known_1")):
        stays = f"run_begins ? {moved} : known_{k}" if k == 0 else "known_1"
        model.register(f"known_{k}", f"ends && place == {k} ? known : {stays}", bits)
    claims = {
        "loaded_while_a_message_waits": "loaded == (waiting != 0)",
        "tells_what_is_wrong": "!loaded || bad == known_0[1:0]",
        "knows_whether_two_wait": "both == (waiting == 2)",
        "holds_the_message_behind": f"!both || ({_same('second', 'known_1', shape)})",
        "holds_the_first_message": f"!loaded || ({_same('first', 'known_0', shape)})",
    }
    if shape.some:
        claims["tells_whether_it_sends"] = "!loaded || counts == known_0[2]"
    if shape.length_bits:
        claims["tells_the_length"] = (
            "!loaded || !known_0[2] || known_0[0] || length == known_0 >> 3"
        )
    if model.has("load_valid"):
        claims["waits_for_its_command"] = (
            "(waiting == 0 || load_valid[begun[0]]) && (waiting != 2 || load_valid == 3)"
        )
    model.claims(claims)


def _same(register: str, known: str, shape: LoaderShape) -> str:
    """That a register holds what is known, but for the length of a message that has none."""
    same = f"{register}[2:0] == {known}[2:0]"
    if shape.length_bits:
        same += f" && (!{known}[2] || {known}[0] || {register} >> 3 == {known} >> 3)"
    return same


def _claim_writes(model: Model, shape: LoaderShape) -> None:
    """A cycle after a word was accepted it is written, and nothing else ever is."""
    sections = shape.facts.sections
    model.wire("counts_word", "beat && !beyond")
    # A sum in SystemVerilog has as many bits as the longer of its parts, unless these are more.
    size, base = shape.address_bits, "0"
    if shape.base_bits:
        base = base_of(shape, f"row >> {shape.memory_bits}", "$past(mode)")
    claims = {
        "writes_what_it_accepts_once": "write_enable == (steady && $past(counts_word))",
        "writes_the_word": f"!write_enable || write_data == $past(tdata[{shape.width - 1}:0])",
        "writes_to_the_right_address":
            f"!write_enable || write_address == {size}'({size}'({base}) + $past(word_within))",
        "writes_into_its_section": "!write_enable || write_section == $past(filling)",
        "writes_what_no_run_reads":
            f"!write_enable || !under_way || {section_of('write_section', sections)} != "
            f"{section_of('ended', sections)}",
        "writes_into_the_two_next_runs":
            f"!write_enable || {sections.number_bits}'(write_section - begun) < 2",
    }  # fmt: skip
    if shape.memory_bits:
        claims["writes_into_the_right_memory"] = (
            f"!write_enable || write_bank == row[{shape.memory_bits - 1}:0]"
        )
    if shape.key_bits:
        key = key_of(shape, "tdest")
        claims["asks_for_the_row_of_the_word"] = f"!counts_word || key == {key}"
    if shape.kept:
        named = by_value(shape.named, "mode")
        mine = f"!{named} || tdest == own" if shape.packet_bits else "1'b1"
        kept = f"$past(counts_word && ({mine}))"
        claims["keeps_what_is_its_own"] = f"write_kept == (steady && {kept})"
        claims["keeps_it_in_its_place"] = "!write_kept || write_index == $past(at)"
    model.claims(claims)
