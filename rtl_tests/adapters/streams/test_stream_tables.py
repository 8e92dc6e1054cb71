"""Sizes of the ROMs of loaders and unloaders, and of the Verilog of a fabric with many modes."""

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.fpga.synthesis.report import rom_rows
from torusfabric.rtl.netlist import Role
from torusfabric.verilog import emit

COLLECTIVES = ("allgather", "allreduce", "alltoall")

#: Largest ratio of the ROM bits for several collectives to those of fabrics for each one alone.
MOST = 1.3


def fabric_of(topology, *collectives, most=16):
    """Return a fabric with streams for messages of up to `most` flits."""
    schedules = [tf.plan(topology, each, flits=most) for each in collectives]
    return tf.Fabric(tf.compile(schedules, max_flits=most), width=8, top="stream", beat=1)


def rom_bits(fabric):
    """Return the number of bits in the ROMs of loaders and unloaders."""
    roms = fabric.netlist.instances_with_role(Role.ROM)
    return sum(len(rom.contents) * rom.width for rom in roms if "load_row" in rom.name)


@pytest.mark.parametrize(("topology", "most"), few(2, [("4x4", 16), ("4x4", 12), ("3x5", 16)]))
def test_modes_together_have_tables_as_large_as_alone(topology, most):
    """A fabric with three modes has at most 1.3 times the ROM bits of one fabric per mode."""
    alone = sum(rom_bits(fabric_of(topology, each, most=most)) for each in COLLECTIVES)
    together = rom_bits(fabric_of(topology, *COLLECTIVES, most=most))
    assert 0 < together <= MOST * alone


@pytest.mark.long
def test_a_large_fabric_is_a_small_text():
    """The Verilog of an 8x8 fabric with three modes has fewer than 12,000 lines."""
    fabrics = [fabric_of("8x8", each) for each in COLLECTIVES]
    whole = fabric_of("8x8", *COLLECTIVES)
    assert rom_bits(whole) <= MOST * sum(map(rom_bits, fabrics))
    design = emit(whole)
    assert design.text.count("\n") < 12000
    costs = {"cost": {"luts": 1, "brams": 0}}
    rows = rom_rows(design, dict.fromkeys(design.contents, costs))
    assert sum(row["bits"] for row in rows if "load_row" in row["name"]) == rom_bits(whole)
    assert [row["bits"] for row in rows] == sorted((row["bits"] for row in rows), reverse=True)


@pytest.mark.long
def test_a_larger_fabric_is_no_larger_text(tmp_path):
    """The Verilog of a 16x16 fabric with three modes has fewer than 12,000 lines."""
    words = ["--top", "stream", "--width", "64", "--max-flits", "16", "-o", str(tmp_path / "out")]
    assert main(["verilog", "16x16", ",".join(COLLECTIVES), *words]) == 0
    assert (tmp_path / "out" / "fabric.v").read_text().count("\n") < 12000
