"""Origins of received words: how the host finds them, and the cost of tags instead."""

import json

import pytest
from amaranth.back import rtlil
from helpers import fabric_of, few, program_of

from torusfabric.cli import main
from torusfabric.rtl.inventory import Origins, tag_cost


def rom_bits_in_text(module):
    """Return the memory bits in the RTLIL of a host, without memories that divide an address."""
    text = rtlil.convert(module, emit_src=False)
    lines = [line.split() for line in text.splitlines() if line.lstrip().startswith("memory ")]
    known = [line for line in lines if not line[5].startswith(("\\read_", "\\write_"))]
    return sum(int(line[2]) * int(line[4]) for line in known)


def test_four_by_four():
    """Costs on 4x4 equal a count by hand: columns of two ROMs, and 4 tag bits on 64 arcs."""
    origins = fabric_of("4x4", "allgather", "hamiltonian").origins
    # Bits for each node: its positions on two cycles of 16, and the in-port of each of four routes.
    # Bits for each origin: the positions again. Bits for each distance: one for a node's own block,
    # one for each of three routes (else the fourth), and the step on each of four routes.
    assert origins.rom_bits == 16 * (2 * 4 + 4 * 2) + 16 * (2 * 4) + 16 * (1 + 3 + 4 * 3)
    assert origins.tag_registers == origins.tag_multiplexers == 4 * 64
    assert (origins.rom_cells, origins.tag_cells) == (40, 256)
    assert str(origins) == (
        "position on the stream, 40 cells (640 ROM bits); "
        "tags would take 256 (256 registers and 256 multiplexers)"
    )


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm"),
    few(
        4,
        [
            ("4x4", "allgather", "hamiltonian"),
            ("3x4x5", "allgather", "hamiltonian"),
            ("5x5", "allgather", "one-packet"),
            ("3x3", "allgather", "one-packet"),
            ("8x8", "allgather", "matching"),
            ("3x3", "alltoall", "matching"),
            ("arrowhead:2", "broadcast", "wormhole-forest"),
        ],
    ),
)
def test_rom_bits_are_those_of_the_hardware(topology, collective, algorithm):
    """The reported ROM bits are those of the emitted host."""
    fabric = fabric_of(topology, collective, algorithm)
    host = fabric.netlist.modules["host"]()
    assert fabric.origins.rom_bits == rom_bits_in_text(host) > 0


SIZES = ["2x2", "3", "5", "64", "4x4", "5x5", "8x8", "9x9", "32x32", "3x3x3", "7x7x7", "4x4x4x4"]
ONE_PACKET = ["2x2", "3x3", "5x5", "8x8", "9x9", "3x3x3", "6x6x6", "4x4x4x4"]


@pytest.mark.parametrize(
    ("topology", "algorithm"),
    few(
        8,
        [
            *((name, "hamiltonian") for name in SIZES),
            *((name, "one-packet") for name in ONE_PACKET),
        ],
    ),
)
def test_positions_are_cheaper_than_tags(topology, algorithm):
    """Positions cost less than a third of tags at every size."""
    origins = fabric_of(topology, "allgather", algorithm).origins
    assert origins.known_by == "position on the stream"
    assert 3 * origins.rom_cells < origins.tag_cells


def test_tags_by_crossbar_inputs():
    """Each crossbar input after the first costs a multiplexer a tag bit; one origin costs none."""
    # A ring of 5: every out-port is fed from its node and then from one in-port.
    assert tag_cost(program_of("5", "allgather", "hamiltonian")) == (3 * 10, 3 * 10)
    # A ring of 3 has one step, in which every out-port is fed from its node.
    assert tag_cost(program_of("3", "allgather", "hamiltonian")) == (2 * 6, 0)
    # Crossbars of the lee-code have few inputs, mostly one.
    registers, multiplexers = tag_cost(program_of("7x7x7", "allgather", "lee-code"))
    assert registers == 9 * 343 * 6
    assert multiplexers < registers
    assert tag_cost(program_of("4x4", "broadcast", "max-flow")) == (0, 0)


def test_no_roms_in_a_core():
    """A core has no host, and so no ROM for origins."""
    assert fabric_of("4x4", "allgather", "hamiltonian", top="core").origins.rom_bits == 0


def test_asking_changes_nothing():
    """The cost does not depend on width and length, and can be read repeatedly."""
    fabric = fabric_of("5x5", "allgather", "one-packet")
    longer = fabric_of("5x5", "allgather", "one-packet", width=64, flits=3)
    assert fabric.origins == fabric.origins == longer.origins


def test_text_where_there_is_one_origin():
    """The report says that all tags of a broadcast would be alike."""
    assert str(Origins("round and address", 512, 0, 0)) == (
        "round and address, 32 cells (512 ROM bits); tags would be all alike"
    )


@pytest.mark.long
def test_reports_say_it(capsys, tmp_path):
    """`simulate` and `verilog` print the cost, as text and as JSON."""
    wanted = fabric_of("4x4", "allgather", "hamiltonian").origins
    for words in (["simulate"], ["verilog", "-o", str(tmp_path / "out")]):
        command = [words[0], "4x4", "allgather", "--algorithm", "hamiltonian", *words[1:]]
        assert main(command) == 0
        assert str(wanted) in capsys.readouterr().out
        assert main([*command, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["origins"] == wanted.to_json()
