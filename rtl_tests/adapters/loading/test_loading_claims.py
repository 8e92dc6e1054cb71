"""Claims of the adapter `loading`: the prover proves them, and refutes planted faults."""

import zlib
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from board_systems import board_system
from helpers import few

import torusfabric as tf
from torusfabric.adapters.boards.files import emit_boards
from torusfabric.adapters.loading.claims import claims, harnesses, with_constant_tables
from torusfabric.adapters.loading.claims.writing import image_claim, writing_harnesses
from torusfabric.proof import prove
from torusfabric.proof.gates import read_gates
from torusfabric.proof.report import Refuted
from torusfabric.proof.solver import prove_harness
from torusfabric.proof.units import find_operators


@cache
def loaded(top="host"):
    """Return a fabric with loaded tables, and its design."""
    plans = [tf.plan("3", name) for name in ("allgather", "allreduce")]
    program = tf.compile(plans, max_flits=4, operators=["add"])
    fabric = tf.Fabric(program, width=8, top=top, tables="ram")
    return fabric, tf.emit(fabric)


@pytest.mark.parametrize(
    ("top", "modules"),
    [
        ("host", "loader table_rows table_modes table_blocks table_starts table_node_0"),
        ("stream", "image_loader table_rows table_modes table_starts table_node_0"),
    ],
)
def test_all_is_proved(top, modules):
    """All claims about a loader are proved; tables that differ only in contents are proved once."""
    fabric, _ = loaded(top)
    found = [*harnesses(fabric)]
    assert [each.name for each in found] == modules.split()
    assert all(prove_harness(each).failed is None for each in found)


#: Module, text, wrong text, and the claim that the wrong text breaks.
FAULTS = {
    "a table that is written by another number": (
        "table_node_0", "(load_table == number) |", "1'd1 |", "shows_address_row_from_0"),
    "a piece that has the number of another": (
        "table_node_0", "(load_piece_d1 == 3'd0)", "(load_piece_d1 == 3'd1)",
        "shows_select_row_from_0"),
    "rows that are written in pairs": (
        "table_node_0", "piece_0[load_row_d1[2:0]]", "piece_0[load_row_d1[2:0] & 3'd6]",
        "shows_select_row_from_0"),
    "a register that takes the word of another row": (
        "table_starts", "(load_row_d1 == 8'd2)", "(load_row_d1 == 8'd3)", "shows_row_from_12"),
    "another format": ("loader", "32'h2494654", "32'h1494654", "is_where_the_reader_is"),
    "a run of rows that is one shorter": (
        "loader", "(rows_left == 10'd0)", "(rows_left == 10'd1)", "is_where_the_reader_is"),
    "a row that is written twice": (
        "loader", "next_row <= next_row + 8'd1;", "next_row <= next_row;", "knows_the_rows"),
    "a bit of the check": ("loader", "32'h826880ef", "32'h826880ee", "sums_up"),
    "a check that is not compared": (
        "loader", "right <= load_data == ~check;", "right <= 1'd1;", "is_right_when_the_check_is"),
    "a mode that runs": (
        "loader", "? ~busy :", "? 1'd1 :", "begins_when_nothing_runs_that_it_fills"),
    "an image that is there at once": (
        "loader", "{settles_3 ? {last_word, program_,\n    settles_3} : 65'd0",
        "{settles_3 ? {last_word, program_,\n    settles_3} : 65'd1",
        "is_not_there_while_it_is_filled"),
}  # fmt: skip


@pytest.mark.parametrize("what", few(5, [*FAULTS]))
def test_faults_are_refuted(what):
    """The prover refutes each planted fault, and names the claim that the fault breaks."""
    module, right, wrong, claim = FAULTS[what]
    fabric, design = loaded()
    text = design.modules[module]
    assert right in text
    modules = {**design.modules, module: text.replace(right, wrong)}
    assert refuted_claim(fabric.netlist, replace(design, modules=modules), fabric, module) == claim


def refuted_claim(netlist, design, fabric, module):
    """Return the claim about a module that the prover refutes."""
    every = writing_harnesses(netlist, design, fabric.digest)
    (harness,) = (each for each in every if each.name == module)
    failed = prove_harness(harness).failed
    assert failed is not None
    return failed.signal


#: Planted faults in the loader of a board: text, wrong text, and the claim that it breaks.
OF_BOARDS = {
    "tables of the other board": (
        "? 2'd3 : 2'd1", "? 2'd1 : 2'd3", "numbers_tables_by_the_block"),
    "an image that comes while the board waits": (
        "& ~busy", "& 1'd1", "begins_when_nothing_runs_that_it_fills"),
    "an image that a start does not stop": (
        "(state >= 4'd5) & busy", "(state >= 4'd5) & 1'd0", "is_where_the_reader_is"),
    "the number of another image": (
        "there_read_data[52:37]", "there_read_data[53:38]", "names_the_image_that_is_there"),
}  # fmt: skip


@pytest.mark.parametrize("what", few(2, [*OF_BOARDS]))
def test_faults_of_boards_are_refuted(what):
    """The prover refutes each planted fault in the loader of a board."""
    right, wrong, claim = OF_BOARDS[what]
    system = board_system((4,), "2", 9, "allgather", max_flits=2, tables="ram")
    design, netlist = emit_boards(system), system.netlists[0]
    text = design.modules["loader"]
    assert right in text
    modules = {**design.modules, "loader": text.replace(right, wrong)}
    found = refuted_claim(netlist, replace(design, modules=modules), system.fabric, "loader")
    assert found == claim


def refuted_wires(port, change):
    """Return the message of the refutation after a change of one pin of node 1's table."""
    fabric, _ = loaded()
    still = with_constant_tables(fabric)
    design = tf.emit(still)
    text = read_gates(design, still.netlist.roles, operators=find_operators(still, design))
    pins = text.instances["the_table_node_1"].pins
    pins[port] = change(pins[port])
    for claim in claims(fabric, design, text):
        if claim.name == "loading":
            with pytest.raises(Refuted) as found:
                claim.check()
            return found.value.counterexample.message
    raise AssertionError


def test_wires_are_compared():
    """Wrong wires of a table are refuted, with the pin in the message."""
    message = refuted_wires("number", lambda bits: ["0"] * len(bits))
    assert "number of the_table_node_1 must be wired to" in message
    message = refuted_wires("load_word", lambda bits: bits[::-1])
    assert "load_word of the_table_node_1 must be wired to" in message


@pytest.mark.parametrize("at", [-3, -12])
def test_words_of_images_are_compared(at):
    """An image with a wrong word is refuted, even if its CRC is right."""
    fabric, _ = loaded()
    image_claim(fabric.image).check()
    wrong, words = copy(fabric.image), [*fabric.image.words]
    words[at] ^= 1
    words[-1] = zlib.crc32(np.array(words[:-1], "<u4").tobytes())
    wrong.__dict__["words"] = words
    with pytest.raises(Refuted):
        image_claim(wrong).check()


@pytest.mark.parametrize("names", ["reduce", "reduce,scatter"])
def test_streams_of_short_runs_are_proved(names):
    """Fabrics with streams and very short runs are proved.

    The sequencer signals the end of such a run in its last slot. That is late for streams, but not
    wrong.
    """
    plans = [tf.plan("3", name) for name in names.split(",")]
    program = tf.compile(plans, max_flits=2, operators=["add"])
    assert prove(tf.Fabric(program, width=4, top="stream", tables="ram", beat=1)).proved
