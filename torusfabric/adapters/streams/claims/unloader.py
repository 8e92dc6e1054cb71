"""Claims about unloaders: the rules of AXI-Stream, and each word once, in order, with its tags.

A *model* in Verilog beside the unloader steps through the words of ended runs, packet by packet.
When a word enters the pipeline of the unloader, the model puts its tags, `tlast` and `tid`, into a
queue as long as the pipeline:

    counters -> sought -> asked  -> read   -> tvalid    pipeline of the unloader
                tags_3    tags_2    tags_1    tags_0    queue of the model, without gaps

The word on the stream must be the head of this queue. So no word is lost, doubled or exchanged,
however long the receiver stalls. A word has three states on its way: *asked for* by the counters,
*seeking* while its row is read from the packet table, and *waiting* while its address is at the
memory port.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....proof.model import Model, by_value, stays, within
from .engines import (
    add_runs,
    add_words,
    address_of,
    fact,
    field_of,
    full_beats,
    keep_facts,
    row_of,
    section_of,
    takes_part,
)  # fmt: skip

if TYPE_CHECKING:
    from ....proof.solver import Harness
    from ....verilog.design import Design
    from ..engine import EngineShape

__all__ = ["unloader_harness"]


def unloader_harness(design: Design, shape: EngineShape) -> Harness:
    """Return the harness of an unloader: the emitted module, the model and the claims.

    Parameters
    ----------
    design : Design
        The emitted Verilog.
    shape : EngineShape
        Parameters of the unloaders.
    """
    constants = ["receives", "position"] + ["row"] * (not shape.key_bits)
    constants += ["own_last", "own_numbers"] * shape.lacks
    model = Model(design, "unloader", constants=constants)
    add_runs(model, shape.facts.sections, begins_if="free")
    _add_facts(model, shape)
    model.wire("advance", "read_advance")
    model.wire("asks", "asking != ended && brings")
    model.wire("step", "asks && advance")
    _add_position(model, shape)
    _add_queue(model, shape)
    _add_places(model, shape)
    _claim_port(model, shape)
    # Only the sections of the last `buffers` ended runs are read.
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
        cycles=len(_pipeline(shape)) + 1,
    )


def _pipeline(shape: EngineShape) -> list[tuple[str, str]]:
    """Return the valid bit and the tags of each pipeline stage, the last stage first."""
    size = shape.keep_bits // shape.beat
    full = "".join(f"tkeep[{k * size}], " for k in reversed(range(1, shape.beat)))
    reads = [(f"read_{k}_valid", f"read_{k}") for k in range(shape.port.answer - 1)]
    ends = [("asked_valid", "asked"), ("sought_valid", "sought >> 1")]
    return [("tvalid", f"{{{full}tid, tlast}}"), *reversed(reads), *ends]


def _add_facts(model: Model, shape: EngineShape) -> None:
    """Add the facts of the run that is unloaded, and claim which of the last runs bring words.

    The model assumes that each section has a valid form. The claim `knows_the_modes` of commands
    proves this.
    """
    facts, sections = shape.facts, shape.facts.sections
    widths = {"run_empty": 1, "unload_mode": facts.form_bits, "unload_root": facts.root_bits,
              "run_last": shape.length_bits}  # fmt: skip
    keep_facts(model, sections, {name: bits for name, bits in widths.items() if model.has(name)})
    section = section_of("asking", sections)
    model.register("asking", "asking + passes", sections.number_bits)
    for name, bits in (("mode", facts.form_bits), ("root", facts.root_bits)):
        model.wire(name, fact(model, f"unload_{name}", section, bits), max(bits, 1))
    last = str(shape.most_flits - 1)
    if shape.length_bits:
        last = within("run_last", section, shape.length_bits)
    model.wire("last_flit", last, shape.last_bits)
    model.wire("last_index", f"last_flit >> {shape.flit_bits}", shape.words.index_bits)
    model.wire("empty", f"run_empty[{section}]")
    model.assume(f"empty || last_flit < {shape.most_flits}")
    model.wire("brings", f"{takes_part(shape, 'receives', 'mode', 'root')} && !empty")
    for number in map(str, range(sections.count)):
        form = fact(model, "unload_mode", number, facts.form_bits)
        root = fact(model, "unload_root", number, facts.root_bits)
        model.assume(f"{form} < {len(shape.packets)}")
        receives = takes_part(shape, "receives", f"({form})", f"({root})")
        before = f"$past({receives} && !run_empty[{number}])"
        model.claim(f"knows_what_brings_{number}", f"!steady || brought[{number}] == {before}")


def _add_position(model: Model, shape: EngineShape) -> None:
    """Add the packet and the index of the next word; runs that bring no words are skipped."""
    sections, bits = shape.facts.sections, shape.facts.sections.number_bits
    model.wire("last_word", "at == last_index")
    numbers = by_value([count - 1 for count in shape.counts], "mode")
    if shape.lacks:
        numbers = within("own_last", "mode", shape.packet_bits)
    model.wire("ends_run", f"last_word && its_packet == {numbers}")
    model.register("at", "step ? (last_word ? 0 : at + 1) : at", shape.words.index_bits)
    model.register(
        "its_packet",
        "step && last_word ? (ends_run ? 0 : its_packet + 1) : its_packet",
        max(shape.packet_bits, 1),
    )
    add_words(model, shape, "at", "mode", valid="at <= last_index")
    # Words on their way to memory: the word whose row is read (seeking), and the word whose address
    # is at the memory port (waiting).
    for name, enters, last in (
        ("seeking", "asks", "ends_run"),
        ("waiting", "seeking", "seeking_last"),
    ):
        model.register(name, f"advance ? {enters} : {name}")
        model.register(f"{name}_last", f"advance ? {enters} && {last} : {name}_last")
    at_rest = "asking != ended && !brings && !seeking && !waiting"
    model.register("passing", f"{at_rest} && !passing")
    model.wire("passes", "(step && ends_run) || passing")
    claims = {
        "counts_runs": f"run == asking && complete == {bits}'(ended - asking)",
        "counts_claims": f"claimed == {{1'b0, {bits}'(begun - asking)}} + seeking_last + "
        f"waiting_last && claimed <= {sections.buffers}",
        "counts_ended_runs": f"{bits}'(ended - asking) <= {sections.buffers} && "
                             f"{bits}'(begun - ended) < 2",
        "asks_for_what_has_ended": "there == asks",
        "passes_over_what_brings_nothing": f"skips == passing && (!passing || ({at_rest}))",
        "knows_where_packets_end": "!asks || ends_packet == last_word",
        "knows_where_runs_end": "!asks || finishes == ends_run",
        "counts_words": "index == at",
        "keeps_to_the_run": "(at == 0 && its_packet == 0) || asks",
        "keeps_to_the_packet": f"!asks || (at <= last_index && its_packet <= {numbers})",
    }  # fmt: skip
    if model.has("packet"):
        claims["counts_packets"] = "packet == its_packet"
        claims["knows_the_last_packet"] = f"!asks || last_packet == (its_packet == {numbers})"
    model.claims(claims)


def _add_queue(model: Model, shape: EngineShape) -> None:
    """Add the queue of tags of words in the pipeline, the oldest first."""
    model.wire("origin", _origin(shape), shape.number_bits)
    model.wire("ends_at", f"last_flit | {{{shape.last_bits}{{!last_word}}}}", shape.last_bits)
    pipeline, tags = _pipeline(shape), "origin, last_word"
    low, bits, stages = shape.number_bits + 1, shape.number_bits + shape.beat, len(pipeline)
    if shape.flit_bits:
        tags = f"ends_at[{shape.flit_bits - 1}:0], {tags}"
    model.wire("leaves", "tvalid && tready")
    model.register("inside", "inside + step - leaves", 3)
    model.wire("behind", "inside - leaves", 3)
    for k in range(stages):
        moved = f"leaves ? tags_{min(k + 1, stages - 1)} : tags_{k}"
        entered = f"step && behind == {k} ? {{{tags}}} : {moved}"
        model.register(f"tags_{k}", entered, low + shape.flit_bits)
        # The word as the stream shows it: the flits that are full, and the tags.
        full = [f"tags_{k} >> {low} >= {flit}, " for flit in reversed(range(1, shape.beat))]
        model.wire(f"word_{k}", f"{{{''.join(full)}tags_{k}[{low - 1}:0]}}", bits)
    ahead, claims = "0", {}
    for number, (valid, tags) in enumerate(pipeline):
        word = " : ".join(
            [*(f"({ahead}) == {k} ? word_{k}" for k in range(number)), f"word_{number}"]
        )
        claims[f"stage_{number}_holds_its_word"] = f"!{valid} || {bits}'({tags}) == ({word})"
        ahead += f" + {valid}"
    claims["holds_every_word_once"] = f"inside == {ahead}"
    if shape.flit_bits:
        whole = " || ".join(f"tkeep == {keep}" for keep in full_beats(shape))
        claims["keeps_whole_flits"] = f"!tvalid || {whole}"
    model.claims(claims)


def _origin(shape: EngineShape) -> str:
    """Return the origin of the present packet, in Verilog."""
    origin = f"its_packet | {by_value([each.origin for each in shape.packets], 'mode')}"
    if shape.lacks:
        at = f"((mode << {shape.packet_bits}) | its_packet)"
        origin = within("own_numbers", at, shape.number_bits)
    return f"{by_value([each.by_root for each in shape.packets], 'mode')} ? root : {origin}"


def _add_places(model: Model, shape: EngineShape) -> None:
    """Add the location of the word at the memory port, and claim that the unloader reads there.

    The row of a word is known one cycle after its address is at the ROM. The model keeps the row
    number, the form and the index of the word for that cycle.
    """
    table, bits = shape.table, shape.facts.sections.number_bits
    packet = f"({by_value([each.by_root for each in shape.packets], 'mode')} ? root : its_packet)"
    address_bits, form_bits = max(table.address_bits, 1), max(shape.facts.form_bits, 1)
    model.wire("its_row", row_of(table, packet, "mode"), address_bits)
    # The location of the word, when its row is read.
    sought = {
        "run": ("asking", bits),
        "form": ("mode", form_bits),
        "index": ("at", shape.words.index_bits),
        "within": ("word_within", shape.words.within_bits),
        "row": ("its_row", address_bits),
    }
    for name, (value, width) in sought.items():
        model.register(f"sought_{name}", f"advance ? {value} : sought_{name}", width)
    claims = {
        f"keeps_its_{name}": f"!seeking || {name}_here == sought_{name}"
        for name in sought if model.has(f"{name}_here")
    }  # fmt: skip
    claims |= {
        f"keeps_bit_{bit}_of_its_row": f"!seeking || row_address[{bit}] == sought_row[{bit}]"
        for bit in table.wired_bits
    }
    row = "row"
    if shape.key_bits:
        model.register("just_sought", "advance")
        row = model.wire("row_of_word", "just_sought ? row : held", table.rom_bits)
        model.register("held", "row_of_word", table.rom_bits)
        claims |= {
            "asks_for_the_row_of_the_word": "!asks || key == its_row",
            "keeps_the_row":
                "fresh == just_sought && (!seeking || fresh || held_row == held)",
        }  # fmt: skip
    fields = {name: field_of(table, name, "sought_row", row, "sought_form")
              for name in table.fields}  # fmt: skip
    wanted = {
        "section": ("sought_run", bits),
        "bank": (fields["bank"], shape.port.bank_bits),
        "address":
            (address_of(shape, fields["base"], "sought_within"), shape.port.address_bits),
    }  # fmt: skip
    if shape.keeps:
        wanted |= {"own": (fields["own"], 1), "index": ("sought_index", shape.words.index_bits)}
    for name, (value, width) in wanted.items():
        model.register(f"wanted_{name}", f"advance ? {value} : wanted_{name}", width)
        claims[f"asks_for_the_right_{name}"] = f"!waiting || read_{name} == wanted_{name}"
    model.claims(claims)
    model.claims({
        "seeks_in_the_run_that_is_unloaded":
            f"!seeking || sought_run == {bits}'(asking - seeking_last)",
        "asks_in_the_run_that_is_unloaded":
            f"!waiting || wanted_section == {bits}'(asking - waiting_last - seeking_last)",
        "is_within_the_run":
            "!(seeking || waiting) || (seeking ? seeking_last : waiting_last) || at != 0 || "
            "its_packet != 0",
        "knows_the_last": "(!seeking_last || seeking) && (!waiting_last || waiting)",
        "seeks_what_it_asks": "sought_valid == seeking && (!seeking || sought[0] == seeking_last)",
        "asks_what_it_sought": "asked_valid == waiting && last_asked == waiting_last",
    })  # fmt: skip


def _claim_port(model: Model, shape: EngineShape) -> None:
    """Claim the rules of AXI-Stream, and that every word is offered after a bounded time."""
    stages, tags = (
        len(_pipeline(shape)),
        "{tkeep, tid, tlast}" if shape.flit_bits else "{tid, tlast}",
    )
    waits = "tvalid && !tready"
    model.register("starved", "inside != 0 && !tvalid ? starved + 1 : 0", 3)
    model.claims({
        "goes_on_as_the_port_does": "shows_words == tvalid && shows_runs == tvalid",
        "tvalid_stays_until_tready": f"!steady || !$past({waits}) || tvalid",
        "tags_are_stable": stays(tags, waits),
        "hands_over_the_next_word": "!tvalid || inside != 0",
        "hands_over_every_word_soon": f"starved < {stages}",
        "free_stays_until_a_run_begins": "!steady || !$past(free && !run_begins) || free",
    })  # fmt: skip
