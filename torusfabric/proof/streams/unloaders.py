"""What is claimed of unloaders: AXI-Stream, and every word once, in order, with its tags.

The model walks through the words of runs that have ended, packet by packet; whenever a word can be
asked for, its tags enter a queue as long as the pipeline. What is handed over at the port must be
the head of that queue. So nothing is lost, doubled or exchanged between the memory and the port,
however long the receiver waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import Model, by_value, stays, within
from .runs import (
    add_runs,
    add_words,
    base_of,
    counts_steps,
    fact,
    full_beats,
    keep_facts,
    key_of,
    section_of,
    takes_part,
)  # fmt: skip

if TYPE_CHECKING:
    from ...rtl.streams.shapes import UnloaderShape
    from ...verilog.design import Design
    from ..solver import Harness

__all__ = ["unloader_harness"]

#: The registers in which a word waits on its way to the port: that it is there, and its tags; the
#: nearest to the port first.
STAGES = (
    ("tvalid", "{tid, tlast}"),
    ("read_valid", "read"),
    ("asked_valid", "asked"),
    ("sought_valid", "sought >> 1"),
)


def unloader_harness(design: Design, shape: UnloaderShape) -> Harness:
    """The harness around an unloader."""
    constants = ["receives", "position"] + ["row"] * (not shape.key_bits)
    constants += ["own_last", "own_numbers"] * shape.lacking
    model = Model(design, "unloader", constants=constants)
    add_runs(model, shape.facts.sections, begins_if="free")
    _add_facts(model, shape)
    model.wire("advance", "read_advance")
    model.wire("asks", "asking != ended && brings")
    model.wire("step", "asks && advance")
    _add_position(model, shape)
    _add_queue(model, shape)
    _add_memory(model, shape)
    _claim_port(model, shape)
    # Nothing is read of the run that is under way, or of any older than a node has room for.
    sections = shape.facts.sections
    read, under_way = (section_of(name, sections) for name in ("read_section", "ended"))
    model.claims({
        "reads_what_no_run_writes": f"!waiting || !under_way || {read} != {under_way}",
        "reads_the_last_runs": f"!waiting || {sections.number_bits}'(ended - read_section - 1) < "
                               f"{sections.buffers}",
    })  # fmt: skip
    return model.harness(
        "every word of a run that has ended is handed over once, in order, with its tlast and tid, "
        "and stays until it is taken; none is read of what a run writes",
        cycles=len(_path(shape)) + 1,
    )


def _path(shape: UnloaderShape) -> list[tuple[str, str]]:
    """The registers of `STAGES`, with one between where a choice takes two cycles."""
    return [STAGES[0], *[("chosen_valid", "chosen")] * shape.late, *STAGES[1:]]


def _add_facts(model: Model, shape: UnloaderShape) -> None:
    """What is known of the run that is unloaded."""
    facts, sections = shape.facts, shape.facts.sections
    kept = {"run_empty": 1, "unload_mode": facts.form_bits, "unload_root": facts.root_bits,
            "run_last": shape.last_bits}  # fmt: skip
    known = {name: bits for name, bits in kept.items() if model.has(name)}
    keep_facts(model, sections, known)
    section = section_of("asking", sections)
    model.register("asking", "asking + passes", sections.number_bits)
    for name, bits in (("mode", facts.form_bits), ("root", facts.root_bits)):
        model.wire(name, fact(model, f"unload_{name}", section, bits), max(bits, 1))
    last = str(shape.most_flits - 1)
    if "run_last" in known:
        last = within("run_last", section, shape.last_bits)
    model.wire("last_flit", last, shape.last_bits)
    model.wire("last_index", f"last_flit >> {shape.flit_bits}", shape.words.index_bits)
    model.wire("empty", f"run_empty[{section}]")
    model.assume(f"empty || last_flit < {shape.most_flits}")
    model.wire("brings", f"{takes_part(shape, 'receives', 'mode', 'root')} && !empty")
    _add_runs_brought(model, shape)


def _add_runs_brought(model: Model, shape: UnloaderShape) -> None:
    """What the last run in each section brings.

    Of a mode that there is not, nothing is said whether a node receives anything; `knows_the_modes`
    of commands is that no section has one, whether a run in it waits or not.
    """
    facts = shape.facts
    for number in map(str, range(facts.sections.count)):
        mode = fact(model, "unload_mode", number, facts.form_bits)
        root = fact(model, "unload_root", number, facts.root_bits)
        model.assume(f"{mode} < {len(shape.packets)}")
        receives = takes_part(shape, "receives", f"({mode})", f"({root})")
        brings = f"$past({receives} && !run_empty[{number}])"
        model.claim(f"knows_what_brings_{number}", f"!steady || brought[{number}] == {brings}")


def _add_position(model: Model, shape: UnloaderShape) -> None:
    """Which word of which packet is asked for next; a run that brings nothing is passed over."""
    sections, most = shape.facts.sections, max(shape.packets)
    bits, wide = max((most - 1).bit_length(), 1), sections.number_bits
    model.wire("last_word", "at == last_index")
    numbers = by_value([count - 1 for count in shape.packets], "mode")
    if shape.lacking:
        numbers = within("own_last", "mode", shape.count_bits)
    model.wire("last_number", f"number == {numbers}")
    model.wire("run_finishes", "last_word && last_number")
    model.register("at", "step ? (last_word ? 0 : at + 1) : at", shape.words.index_bits)
    model.register("number", "step && last_word ? (last_number ? 0 : number + 1) : number", bits)
    add_words(model, shape.words, "at", "mode", valid="at <= last_index")
    # Words on their way to memory: one whose row is sought, one that is asked for.
    for name, entered in (("sought", "asks"), ("asked", "seeking")):
        here = {"sought": "seeking", "asked": "waiting"}[name]
        last = "run_finishes" if name == "sought" else "seeking_last"
        model.register(here, f"advance ? {entered} : {here}")
        model.register(f"{here}_last", f"advance ? {entered} && {last} : {here}_last")
    model.register("passing", "asking != ended && !brings && !seeking && !waiting && !passing")
    model.wire("passes", "(step && run_finishes) || passing")
    claims = {
        "counts_runs": f"run == asking && complete == {wide}'(ended - asking)",
        "counts_claims": f"claimed == {{1'b0, {wide}'(begun - asking)}} + seeking_last + "
        f"waiting_last && claimed <= {sections.buffers}",
        "counts_ended_runs": f"{wide}'(ended - asking) <= {sections.buffers} && "
                             f"{wide}'(begun - ended) < 2",
        "asks_for_what_has_ended": "there == asks",
        "passes_over_what_brings_nothing":
            "skips == passing && (!passing || (asking != ended && !brings && !seeking && "
            "!waiting))",
        "knows_where_packets_end": "!asks || ends_packet == last_word",
        "knows_where_runs_end": "!asks || finishes == run_finishes",
        "counts_words": "index == at",
        "keeps_to_the_run": "(at == 0 && number == 0) || asks",
        "keeps_to_the_packet":
            f"!asks || (at <= last_index && number <= {numbers})",
    }  # fmt: skip
    if model.has("packet"):
        claims["counts_packets"] = "packet == number"
        claims["knows_the_last_packet"] = "!asks || last_packet == last_number"
    model.claims(claims)


def _add_queue(model: Model, shape: UnloaderShape) -> None:
    """The tags of words that are asked for and not yet handed over, the oldest first."""
    origin = f"number | {by_value(shape.roots, 'mode')}"
    if shape.lacking:
        at = f"((mode << {shape.count_bits}) | number)"
        origin = within("own_numbers", at, shape.id_bits)
    if any(shape.by_root):
        origin = f"{by_value(shape.by_root, 'mode')} ? root : {origin}"
    model.wire("origin", origin, shape.id_bits)
    path = _path(shape)
    bits, stages = shape.id_bits + 1 + shape.flit_bits, len(path)
    tags = "origin, last_word"
    if shape.flit_bits:
        model.wire("ends_at", f"last_flit | {{{shape.flit_bits}{{!last_word}}}}", shape.flit_bits)
        tags = f"ends_at, {tags}"
    model.wire("leaves", "tvalid && tready")
    model.register("inside", "inside + step - leaves", 3)
    model.wire("behind", "inside - leaves", 3)
    for k in range(stages):
        rest = f"tags_{k + 1}" if k + 1 < stages else f"tags_{k}"
        moved = f"leaves ? {rest} : tags_{k}"
        entered = f"step && behind == {k} ? {{{tags}}} : {moved}"
        model.register(f"tags_{k}", entered, bits)
    ahead = "0"
    claims = {}
    for number, (valid, tags) in enumerate(path):
        place = f"({ahead})"
        shown = " : ".join(
            [*(f"{place} == {k} ? tags_{k}" for k in range(number)), f"tags_{number}"]
        )
        # The port shows which flits are full, and not the number of the last.
        size = bits if number else shape.id_bits + 1
        claims[f"stage_{number}_holds_its_word"] = (
            f"!{valid} || {size}'({tags}) == {size}'({shown})"
        )
        ahead += f" + {valid}"
    if shape.flit_bits:
        last = f"tags_0[{bits - 1}:{shape.id_bits + 1}]"
        claims |= {
            f"tkeep_of_{k + 1}_flits": f"!tvalid || {last} != {k} || tkeep == {keep}"
            for k, keep in enumerate(full_beats(shape))
        }
        size = shape.keep_bits // shape.beat
        claims |= {
            f"says_of_flit_{k}_that_it_is_full": "!steady || !$past(read_advance) || "
            f"tkeep[{k * size}] == $past(read_full[{k - 1}])"
            for k in range(1, shape.beat)
        }
    claims["holds_every_word_once"] = f"inside == {ahead}"
    model.claims(claims)


def _add_memory(model: Model, shape: UnloaderShape) -> None:
    """Where the word lies that is asked for: its row comes a cycle after it was sought."""
    low, row, wide = int(shape.kept), "row", shape.facts.sections.number_bits
    model.register("sought_within", "advance ? word_within : sought_within",
                   shape.words.within_bits)  # fmt: skip
    model.register("sought_index", "advance ? at : sought_index", shape.words.index_bits)
    model.register("sought_section", "advance ? asking : sought_section", wide)
    if shape.key_bits:
        model.register("just_sought", "advance")
        model.wire("its_row", "just_sought ? row : kept_row", shape.row_bits)
        model.register("kept_row", "its_row", shape.row_bits)
        row = "its_row"
        packet = "number"
        if any(shape.by_root):
            packet = f"({by_value(shape.by_root, 'mode')} ? root : number)"
        key = key_of(shape, packet)
        model.claims({
            "asks_for_the_row_of_the_word": f"!asks || key == {key}",
            "keeps_the_row": "fresh == just_sought && (!seeking || fresh || held_row == kept_row)",
        })  # fmt: skip
    place, base = "sought_within", "0"
    if shape.kept and counts_steps(shape.words):
        place = f"({row}[0] ? sought_index : sought_within)"
    if shape.base_bits:
        if shape.shift_form_bits:
            mode_bits = shape.shift_form_bits
            model.register("sought_mode", "advance ? mode : sought_mode", mode_bits)
        base = base_of(shape, f"{row} >> {low + shape.memory_bits}", "sought_mode")
        # What a node has from itself lies in a memory of its own, word by word.
        model.assume(f"!{row}[0] || {base} == 0" if shape.kept else "1")
    if shape.memory_bits:
        code = f"{row}[{low + shape.memory_bits - 1}:{low}]"
        model.register("wanted_code", f"advance ? {code} : wanted_code", shape.memory_bits)
        model.claim("reads_the_right_memory", "!waiting || read_code == wanted_code")
    bits = shape.address_bits
    model.register("wanted_address", f"advance ? {base} + {place} : wanted_address", bits)
    model.register("wanted_section", "advance ? sought_section : wanted_section", wide)
    model.claims(_of_memory(model, shape))


def _of_memory(model: Model, shape: UnloaderShape) -> dict[str, str]:
    """What is claimed of the words on their way to memory, and of where they are read."""
    bits, wide = shape.words.within_bits, shape.facts.sections.number_bits
    claims = {
        "reads_the_right_address": "!waiting || read_address == wanted_address",
        "reads_the_right_section": "!waiting || read_section == wanted_section",
        "seeks_in_the_run_that_is_unloaded":
            f"!seeking || sought_section == {wide}'(asking - seeking_last)",
        "reads_in_the_run_that_is_unloaded":
            f"!waiting || wanted_section == {wide}'(asking - waiting_last - seeking_last)",
        "is_within_the_run":
            "!(seeking || waiting) || (seeking ? seeking_last : waiting_last) || at != 0 || "
            "number != 0",
        "knows_the_last":
            "(!seeking_last || seeking) && (!waiting_last || waiting)",
        "seeks_what_it_asks": "sought_valid == seeking && (!seeking || sought[0] == seeking_last)",
        "reads_what_it_asks": "asked_valid == waiting && last_asked == waiting_last",
        "knows_the_place":
            f"!seeking || (place[{wide - 1}:0] == sought_section && "
            f"place[{bits + wide - 1}:{wide}] == sought_within)",
    }  # fmt: skip
    end = bits + wide + shape.shift_form_bits
    if shape.shift_form_bits:
        claims["knows_the_mode"] = f"!seeking || place[{end - 1}:{bits + wide}] == sought_mode"
    if model.width("place") > end:
        claims["knows_the_index"] = f"!seeking || place >> {end} == sought_index"
    if shape.apart:
        reach = by_value([1 << shift + shape.base_bits for shift in shape.shifts], "sought_mode")
        claims["keeps_to_the_pitch"] = f"!seeking || sought_within % {reach} == 0"
    return claims


def _claim_port(model: Model, shape: UnloaderShape) -> None:
    """The rules of AXI-Stream, and what is handed over."""
    stages, bits = len(_path(shape)), shape.id_bits + 1
    tags = "{tkeep, tid, tlast}" if shape.flit_bits else "{tid, tlast}"
    waits = "tvalid && !tready"
    model.register("starved", "inside != 0 && !tvalid ? starved + 1 : 0", 3)
    model.claims({
        "goes_on_as_the_port_does": "shows_words == tvalid && shows_runs == tvalid",
        "tvalid_stays_until_tready": f"!steady || !$past({waits}) || tvalid",
        "tlast_and_tid_are_stable": stays(tags, waits),
        "hands_over_the_next_word":
            f"!tvalid || (inside != 0 && {{tid, tlast}} == {bits}'(tags_0))",
        "hands_over_every_word_soon": f"starved < {stages}",
        "free_stays_until_a_run_begins": "!steady || !$past(free && !run_begins) || free",
    })  # fmt: skip
