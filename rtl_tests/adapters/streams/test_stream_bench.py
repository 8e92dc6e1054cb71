"""The cocotb bench of a fabric with streams: it passes by the manifest alone, and finds faults."""

import json
import re

import pytest
from amaranth.hdl import Const
from fabrics import build_fabric
from helpers import misrouted
from make_bench import have_bench, have_verilator_bench, run_bench, verilator_settings

import torusfabric as tf
from torusfabric.adapters.bus import front as attach
from torusfabric.adapters.streams.loader import Loader

pytestmark = pytest.mark.skipif(not have_bench(), reason="cocotb, make or Icarus is not installed")


def exported(folder, topology, collective, lengths, *, width=9, fault=None, **options):
    """Return a folder with the emitted files of a fabric."""
    options = {"width": width, "top": "stream"} | options
    fabric = build_fabric(topology, collective, **lengths, **options)
    if fault:
        fabric = tf.Fabric(fault(fabric.program), **options)
    tf.emit(fabric).write(folder)
    return folder


#: Collectives with one sender, one receiver, a packet for each node, groups, and sums.
COLLECTIVES = [
    ("2x2", "alltoall,allreduce", {"max_flits": 3, "operators": ["max:signed", "xor"]}),
    # Modes whose runs end in different stages of the sequencer; after a reset none of these stages
    # is known.
    pytest.param("2", "alltoall,broadcast", {"max_flits": 3}, marks=pytest.mark.long),
    *(
        pytest.param(*case, marks=pytest.mark.long)
        for case in [
            ("2x2", "alltoall", {"max_flits": 3}),
            ("3", "broadcast,scatter", {"max_flits": 3, "root": "any"}),
            ("2x2", "allgather", {"max_flits": 2, "barrier": True}),
            ("3", "broadcast", {"flits": 2}),
            ("2x3", "gather", {"max_flits": 5}),
            # This fabric has four sections in each memory.
            ("2x3", "gather", {"flits": 2}),
            ("2", "alltoall,broadcast", {"max_flits": 8, "root": "any"}),
            ("2x3", "scatter", {"max_flits": 5}),
            ("2x3", "allgather@1", {"max_flits": 4}),
            ("3x3", "reduce-scatter", {"max_flits": 9}),
            ("3x3", "allreduce", {"flits": 9}),
            ("2x3", "reduce", {"max_flits": 3}),
            ("3", "reduce-scatter,reduce", {"max_flits": 4, "operators": ["add:fp16"]}),
        ]
    ),
]


@pytest.mark.parametrize(("topology", "collective", "lengths"), COLLECTIVES)
def test_every_word_is_right(tmp_path, topology, collective, lengths):
    """The bench checks every word of three runs in each mode, and two dropped packets in each."""
    width = 16 if "operators" in lengths else 9
    folder = exported(tmp_path, topology, collective, lengths, width=width)
    passed, text = run_bench(folder, STALL=0.4)
    assert passed, text[-3000:]
    modes = 1 + collective.count(",") + lengths.get("barrier", 0)
    assert re.search(rf"{3 * modes} runs: \d+ words; {2 * modes} dropped", text)


@pytest.mark.parametrize(
    ("collective", "lengths", "bus"),
    [
        ("allgather,alltoall", {"max_flits": 2, "barrier": True}, "axi4"),
        pytest.param("allgather", {"max_flits": 2}, "wishbone", marks=pytest.mark.long),
        pytest.param("broadcast", {"flits": 2, "root": "any"}, "axi-lite", marks=pytest.mark.long),
    ],
)
def test_registers_beside_streams(tmp_path, collective, lengths, bus):
    """With a bus, registers replace the run signals beside the streams, and the bench passes."""
    folder = exported(tmp_path, "2", collective, lengths, width=16, bus=bus)
    ports = json.loads((folder / "manifest.json").read_text())["ports"]
    assert "s_axis_1_tdata" in ports
    assert not {"s_axis_cmd_tdata", "busy", "s_axi_awaddr"} & ports.keys()
    passed, text = run_bench(folder, STALL=0.2, RUNS=1)
    assert passed, text[-3000:]


@pytest.mark.long
def test_a_command_with_words_of_others_is_found(tmp_path, monkeypatch):
    """A command with its words in another order is found.

    Its mode stands where the fabric expects the root, so every run is in mode 0.
    """
    monkeypatch.setattr(attach, "COMMAND_WORDS", ("root", "length", "mode", "operation", "tag"))
    folder = exported(tmp_path, "2", "allgather,alltoall", {"max_flits": 2}, width=16, bus="axi4")
    assert not run_bench(folder, STALL=0)[0]


def test_clocks_of_nodes(tmp_path):
    """The bench drives nodes with clocks of their own."""
    folder = exported(tmp_path, "3", "alltoall", {"max_flits": 3}, clocks="per-node")
    ports = json.loads((folder / "manifest.json").read_text())["ports"]
    assert ports["s_axis_2_tdata"]["clock"] == ports["rst_2"]["clock"] == "clk_2"
    assert ports["clk_2"]["role"] == "clock"
    assert ports["rst_2"]["role"] == "reset"
    passed, text = run_bench(folder, STALL=0.3)
    assert passed, text[-3000:]


def test_a_wrong_word_is_found(tmp_path):
    """The bench finds a wrong word and names packet and node."""
    folder = exported(tmp_path, "2x2", "alltoall", {"flits": 2}, fault=misrouted)
    passed, text = run_bench(folder, RUNS=1)
    assert not passed
    assert re.search(r"packet \d at node \d is Packet", text)


@pytest.mark.parametrize("faults", [1, pytest.param(0, marks=pytest.mark.long)])
def test_a_destination_that_is_not_checked_is_found(tmp_path, monkeypatch, faults):
    """The bench finds a missing check of destinations, if it sends faulty packets."""
    monkeypatch.setattr(Loader, "is_wrong_destination", lambda *_: Const(0))
    folder = exported(tmp_path, "3", "alltoall", {"flits": 1})
    passed, text = run_bench(folder, RUNS=4, FAULTS=faults)
    assert passed == (faults == 0)
    assert faults == 0 or re.search(r"errors are|packet \d+ at node|must", text)


def test_wrong_cycles_are_found(tmp_path):
    """The bench finds a run that takes other cycles than the manifest says."""
    folder = exported(tmp_path, "3", "broadcast", {"flits": 1})
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["modes"][0]["cycles"][0]["constant"] += 1
    (folder / "manifest.json").write_text(json.dumps(manifest))
    passed, text = run_bench(folder, RUNS=1)
    assert not passed
    assert re.search(r"runs take \[\d+\] cycles, not \[\d+\]", text)


@pytest.mark.parametrize("stall", [0.5, pytest.param(0, marks=pytest.mark.long)])
def test_a_receiver_that_is_not_waited_for_is_found(tmp_path, stall):
    """The bench finds a fabric that ignores `tready` of its receivers, if receivers stall."""
    folder = exported(tmp_path, "2", "allgather", {"flits": 4})
    text = (folder / "fabric.v").read_text()
    deaf = text.replace(".tready(m_axis_tready[k])", ".tready(1'b1)")
    assert deaf != text
    (folder / "fabric.v").write_text(deaf)
    passed, text = run_bench(folder, RUNS=2, STALL=stall)
    assert passed == (stall == 0)


@pytest.mark.long
@pytest.mark.skipif(not have_verilator_bench(), reason="no Verilator")
def test_verilator_agrees(tmp_path):
    """The bench passes in Verilator."""
    folder = exported(tmp_path, "2x2", "alltoall", {"max_flits": 3})
    passed, text = run_bench(folder, **verilator_settings())
    assert passed, text[-3000:]
