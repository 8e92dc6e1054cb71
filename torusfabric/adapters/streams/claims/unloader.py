"""Claims about unloaders: the rules of AXI-Stream, and each word once, in order, with its tags.

An unloader sends the received words of a node as packets to the user. Each memory is divided into
*sections*, one for each of some consecutive runs. The *facts* of a run are its form, root, length
of packets, and a flag for a dropped run. A *harness* is Verilog around the unloader, with a model
and the claims.

The *model* beside the unloader steps through the words of ended runs, packet by packet.
When a word enters the pipeline of the unloader, the model puts the tags of the word, `tlast` and
`tid`, into a queue as long as the pipeline::

    counters -> sought -> asked  -> read   -> tvalid    pipeline of the unloader
                tags_3    tags_2    tags_1    tags_0    queue of the model, without gaps

The word on the stream must be the head of this queue. So no word is lost, doubled or exchanged,
however long the receiver stalls. On its way to the memory a word is *asked for* in stage 0 by the
counters, then *seeking* in stage ``sought``, while its row is read from the packet table, then
*waiting* in stage ``asked``, while its address is at the memory port.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....proof.model import HarnessBuilder, is_stable, select_by_value, vector_field
from .engines import (
    add_runs,
    add_word_position,
    address_expression,
    assume_stable_facts,
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

__all__ = ["unloader_harness"]


def unloader_harness(design: Design, shape: EngineShape) -> Harness:
    """Return the proof harness of an unloader, which sends received words to the user.

    A harness is Verilog around the module, with a model of its behaviour and the statements to
    prove.

    Parameters
    ----------
    design : Design
        The emitted Verilog.
    shape : EngineShape
        Parameters of the unloaders.
    """
    constants = ["receives", "position"] + ["row"] * (not shape.rom_address_bits)
    constants += ["own_last", "own_numbers"] * shape.has_unequal_packets
    constants += ["lengths"] * shape.has_lengths
    model = HarnessBuilder(design, "unloader", constants=constants)
    add_runs(model, shape.facts.sections, begins_if="free")
    _add_facts(model, shape)
    model.add_wire("advance", "read_advance")
    model.add_wire("asks", "asking != ended && brings")
    model.add_wire("step", "asks && advance")
    _add_position(model, shape)
    _add_queue(model, shape)
    _add_location(model, shape)
    _claim_port(model, shape)
    # Only the sections of the last `buffers` ended runs are read.
    sections = shape.facts.sections
    read, under_way = (section_of(name, sections) for name in ("read_section", "ended"))
    model.claim_all(
        {
            "reads_what_no_run_writes": f"!waiting || !under_way || {read} != {under_way}",
            "reads_the_last_runs": (
                f"!waiting || {sections.message_number_bits}'(ended - "
                f"read_section - 1) < {sections.buffers}"
            ),
        }
    )
    return model.make_harness(
        "every word of a finished run is handed over once, in order, with its tlast and tid, and "
        "stays until it is taken; no word is read that a run still writes",
        cycles=len(_pipeline_stages(shape)) + 1,
    )


def _pipeline_stages(shape: EngineShape) -> list[tuple[str, str]]:
    """Return two Verilog expressions for each pipeline stage of an unloader, last stage first.

    The first expression is true if the stage holds a word. The second has the tags of this word
    (`tlast` and `tid`), and a bit for each flit, high if the flit is valid. `shape` has the
    parameters of all unloaders.
    """
    size = shape.keep_bits // shape.beat
    full = "".join(f"tkeep[{k * size}], " for k in reversed(range(1, shape.beat)))
    reads = [(f"read_{k}_valid", f"read_{k}") for k in range(shape.memory_port.read_cycles - 1)]
    ends = [("asked_valid", "asked"), ("sought_valid", "sought >> 1")]
    return [("tvalid", f"{{{full}tid, tlast}}"), *reversed(reads), *ends]


def _add_facts(model: HarnessBuilder, shape: EngineShape) -> None:
    """Add signals to the proof harness that describe the run being unloaded, such as its form.

    The signals are its form, its root, the length of its packets, and a bit that is high if the run
    was dropped. A claim says that the register ``brought`` of the unloader has a bit for each
    section of the memories: high if the last run in the section has words for this node. The proof
    assumes that the form of each section is valid; a claim about `Commands` proves this. `shape`
    has the parameters of all unloaders.
    """
    facts, sections = shape.facts, shape.facts.sections
    widths = {"run_empty": 1, "unload_mode": facts.form_bits, "unload_root": facts.root_bits,
              "run_last": shape.length_bits}  # fmt: skip
    assume_stable_facts(
        model, sections, {name: bits for name, bits in widths.items() if model.has_name(name)}
    )
    section = section_of("asking", sections)
    model.add_register("asking", "asking + passes", sections.message_number_bits)
    for name, bits in (("mode", facts.form_bits), ("root", facts.root_bits)):
        model.add_wire(name, section_fact(model, f"unload_{name}", section, bits), max(bits, 1))
    last = str(shape.most_flits - 1)
    if shape.has_lengths:
        last = planned_length(shape, "its_packet")
    elif shape.length_bits:
        last = vector_field("run_last", section, shape.length_bits)
    model.add_wire("last_flit", last, shape.last_flit_bits)
    model.add_wire("last_index", f"last_flit >> {shape.flit_bits}", shape.word_shape.index_bits)
    model.add_wire("empty", f"run_empty[{section}]")
    model.assume(f"empty || last_flit < {shape.most_flits}")
    model.add_wire("brings", f"{has_packets(shape, 'receives', 'mode', 'root')} && !empty")
    for number in map(str, range(sections.n_sections)):
        form = section_fact(model, "unload_mode", number, facts.form_bits)
        root = section_fact(model, "unload_root", number, facts.root_bits)
        model.assume(f"{form} < {len(shape.packets)}")
        receives = has_packets(shape, "receives", f"({form})", f"({root})")
        before = f"$past({receives} && !run_empty[{number}])"
        model.claim(f"knows_what_brings_{number}", f"!steady || brought[{number}] == {before}")


def _add_position(model: HarnessBuilder, shape: EngineShape) -> None:
    """Add counters to the harness: the number of the current packet, and of the next word in it.

    The claims say that the counters of the unloader have the same values. Runs without words for
    this node are skipped. `model` is the proof harness, and `shape` has the parameters of all
    unloaders.
    """
    sections, bits = shape.facts.sections, shape.facts.sections.message_number_bits
    model.add_wire("last_word", "at == last_index")
    numbers = last_packet(shape)
    model.add_wire("ends_run", f"last_word && its_packet == {numbers}")
    model.add_register("at", "step ? (last_word ? 0 : at + 1) : at", shape.word_shape.index_bits)
    model.add_register(
        "its_packet",
        "step && last_word ? (ends_run ? 0 : its_packet + 1) : its_packet",
        max(shape.packet_bits, 1),
    )
    add_word_position(model, shape, "at", "mode", valid="at <= last_index")
    # Words on their way to memory: the word whose row is read (seeking), and the word whose address
    # is at the memory port (waiting).
    for name, enters, last in (
        ("seeking", "asks", "ends_run"),
        ("waiting", "seeking", "seeking_last"),
    ):
        model.add_register(name, f"advance ? {enters} : {name}")
        model.add_register(f"{name}_last", f"advance ? {enters} && {last} : {name}_last")
    at_rest = "asking != ended && !brings && !seeking && !waiting"
    model.add_register("passing", f"{at_rest} && !passing")
    model.add_wire("passes", "(step && ends_run) || passing")
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
    if model.has_name("packet"):
        claims["counts_packets"] = "packet == its_packet"
        claims["knows_the_last_packet"] = f"!asks || last_packet == (its_packet == {numbers})"
    model.claim_all(claims)


def _add_queue(model: HarnessBuilder, shape: EngineShape) -> None:
    """Add a queue to the proof harness with the tags of all words in the pipeline of the unloader.

    The tags of a word are `tlast`, `tid`, and its valid flits. The claims say that each pipeline
    stage has the tags of its word, so that no word is lost or doubled. `model` is the harness, and
    `shape` has the parameters of all unloaders.
    """
    model.add_wire("origin", _packet_origin(shape), shape.stream_id_bits)
    model.add_wire(
        "ends_at", f"last_flit | {{{shape.last_flit_bits}{{!last_word}}}}", shape.last_flit_bits
    )
    pipeline, tags = _pipeline_stages(shape), "origin, last_word"
    low, bits, stages = shape.stream_id_bits + 1, shape.stream_id_bits + shape.beat, len(pipeline)
    if shape.flit_bits:
        tags = f"ends_at[{shape.flit_bits - 1}:0], {tags}"
    model.add_wire("leaves", "tvalid && tready")
    model.add_register("inside", "inside + step - leaves", 3)
    model.add_wire("behind", "inside - leaves", 3)
    for k in range(stages):
        moved = f"leaves ? tags_{min(k + 1, stages - 1)} : tags_{k}"
        entered = f"step && behind == {k} ? {{{tags}}} : {moved}"
        model.add_register(f"tags_{k}", entered, low + shape.flit_bits)
        # The word as the stream shows it: the flits that are full, and the tags.
        full = [f"tags_{k} >> {low} >= {flit}, " for flit in reversed(range(1, shape.beat))]
        model.add_wire(f"word_{k}", f"{{{''.join(full)}tags_{k}[{low - 1}:0]}}", bits)
    ahead, claims = "0", {}
    for number, (valid, tags) in enumerate(pipeline):
        word = " : ".join(
            [*(f"({ahead}) == {k} ? word_{k}" for k in range(number)), f"word_{number}"]
        )
        claims[f"stage_{number}_holds_its_word"] = f"!{valid} || {bits}'({tags}) == ({word})"
        ahead += f" + {valid}"
    claims["holds_every_word_once"] = f"inside == {ahead}"
    if shape.flit_bits:
        whole = " || ".join(f"tkeep == {keep}" for keep in full_flit_keeps(shape))
        claims["keeps_whole_flits"] = f"!tvalid || {whole}"
    model.claim_all(claims)


def _packet_origin(shape: EngineShape) -> str:
    """Return a Verilog expression for the origin of the packet whose words the unloader sends now.

    `shape` has the parameters of all unloaders.
    """
    origin = f"its_packet | {select_by_value([each.origin for each in shape.packets], 'mode')}"
    if shape.has_unequal_packets:
        at = f"((mode << {shape.packet_bits}) | its_packet)"
        origin = vector_field("own_numbers", at, shape.stream_id_bits)
    return f"{select_by_value([each.by_root for each in shape.packets], 'mode')} ? root : {origin}"


def _add_location(model: HarnessBuilder, shape: EngineShape) -> None:
    """Add registers to the proof harness: the expected memory and address of each word read.

    The claims say that the unloader reads at this memory and address. The location is in the packet
    table, in the row of the word's block; the ROM with the table shows the row one cycle after its
    address. For this cycle, the harness keeps the number of the row, the form, and the number of
    the word in its packet. `shape` has the parameters of all unloaders.
    """
    table, bits = shape.packet_table, shape.facts.sections.message_number_bits
    packet = (
        f"({select_by_value([each.by_root for each in shape.packets], 'mode')} ? root : its_packet)"
    )
    address_bits, form_bits = max(table.address_bits, 1), max(shape.facts.form_bits, 1)
    model.add_wire("its_row", row_expression(table, packet, "mode"), address_bits)
    # The location of the word, when its row is read.
    sought = {
        "run": ("asking", bits),
        "form": ("mode", form_bits),
        "index": ("at", shape.word_shape.index_bits),
        "within": ("word_within", shape.word_shape.offset_bits),
        "row": ("its_row", address_bits),
    }
    for name, (value, width) in sought.items():
        model.add_register(f"sought_{name}", f"advance ? {value} : sought_{name}", width)
    claims = {
        f"keeps_its_{name}": f"!seeking || {name}_here == sought_{name}"
        for name in sought if model.has_name(f"{name}_here")
    }  # fmt: skip
    claims |= {
        f"keeps_bit_{bit}_of_its_row": f"!seeking || row_address[{bit}] == sought_row[{bit}]"
        for bit in table.address_source_bits
    }
    row = "row"
    if shape.rom_address_bits:
        model.add_register("just_sought", "advance")
        row = model.add_wire("row_of_word", "just_sought ? row : held", table.rom_bits)
        model.add_register("held", "row_of_word", table.rom_bits)
        claims |= {
            "asks_for_the_row_of_the_word": "!asks || key == its_row",
            "keeps_the_row":
                "fresh == just_sought && (!seeking || fresh || held_row == held)",
        }  # fmt: skip
    fields = {name: field_expression(table, name, "sought_row", row, "sought_form")
              for name in table.fields}  # fmt: skip
    wanted = {
        "section": ("sought_run", bits),
        "bank": (fields["bank"], shape.memory_port.bank_bits),
        "address": (
            address_expression(shape, fields["base"], "sought_within"),
            shape.memory_port.address_bits,
        ),
    }
    if shape.keeps:
        wanted |= {
            "own": (fields["own"], 1),
            "index": ("sought_index", shape.word_shape.index_bits),
        }
    for name, (value, width) in wanted.items():
        model.add_register(f"wanted_{name}", f"advance ? {value} : wanted_{name}", width)
        claims[f"asks_for_the_right_{name}"] = f"!waiting || read_{name} == wanted_{name}"
    model.claim_all(claims)
    model.claim_all({
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


def _claim_port(model: HarnessBuilder, shape: EngineShape) -> None:
    """Claim that the unloader obeys AXI-Stream, and offers every word after a bounded time.

    `model` is the proof harness, and `shape` has the parameters of all unloaders.
    """
    stages, tags = (
        len(_pipeline_stages(shape)),
        "{tkeep, tid, tlast}" if shape.flit_bits else "{tid, tlast}",
    )
    waits = "tvalid && !tready"
    model.add_register("starved", "inside != 0 && !tvalid ? starved + 1 : 0", 3)
    model.claim_all({
        "goes_on_as_the_port_does": "shows_words == tvalid && shows_runs == tvalid",
        "tvalid_stays_until_tready": f"!steady || !$past({waits}) || tvalid",
        "tags_are_stable": is_stable(tags, waits),
        "hands_over_the_next_word": "!tvalid || inside != 0",
        "hands_over_every_word_soon": f"starved < {stages}",
        "free_stays_until_a_run_begins": "!steady || !$past(free && !run_begins) || free",
    })  # fmt: skip
