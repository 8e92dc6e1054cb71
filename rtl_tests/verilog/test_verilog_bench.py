"""The testbench itself, on a small hand-written fabric and on broken versions of it."""

import json
import random

import numpy as np
import pytest
from verilog_bench import (
    have_icarus,
    have_verilator,
    lint_icarus,
    lint_verilator,
    run_icarus,
    run_verilator,
)

icarus = pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
verilator = pytest.mark.skipif(not have_verilator(), reason="needs Verilator and a C++ compiler")

NODES, FLITS = 3, 2

# Three nodes, each of which ends with the exclusive or of all messages.
FABRIC = """
module fabric(
  input clk, input rst, input start, input host_we, input [1:0] host_node, input [2:0] host_addr,
  input [WIDTH-1:0] host_wdata, output reg busy, output reg done,
  output reg [WIDTH-1:0] host_rdata, output reg [31:0] cycles
);
  reg [WIDTH-1:0] sent [0:7];
  reg [WIDTH-1:0] got [0:7];
  reg [WIDTH-1:0] late;
  wire last = cycles == LAST;
  wire flit = cycles[0];
  always @(posedge clk) begin
    late <= host_addr[2] ? got[{host_node, host_addr[0]}] : sent[{host_node, host_addr[0]}];
    host_rdata <= late;
    if (host_we) sent[{host_node, host_addr[0]}] <= host_wdata;
    if (busy) begin
      cycles <= cycles + 1;
      got[{2'd0, flit}] <= sent[{2'd0, flit}] ^ sent[{2'd1, flit}] ^ sent[{2'd2, flit}];
      got[{2'd1, flit}] <= sent[{2'd0, flit}] ^ sent[{2'd1, flit}] ^ sent[{2'd2, flit}];
      got[{2'd2, flit}] <= sent[{2'd0, flit}] ^ sent[{2'd1, flit}] ^ sent[{2'd2, flit}];
    end
    if (start) begin
      busy <= 1'b1;
      done <= 1'b0;
      cycles <= 32'd0;
    end else if (last & busy) begin
      busy <= 1'b0;
      done <= 1'b1;
    end
    if (rst) begin
      busy <= 1'b0;
      done <= 1'b0;
      cycles <= 32'd0;
    end
  end
endmodule
"""
CYCLES = FLITS + 4


def write(folder, width, *, edit=("", ""), **manifest):
    """Write the fabric and its manifest, with a piece of its text replaced."""
    assert edit[0] in FABRIC
    text = FABRIC.replace(*edit) if edit[0] else FABRIC
    text = text.replace("WIDTH-1", str(width - 1)).replace("LAST", f"32'd{CYCLES - 1}")
    (folder / "fabric.v").write_text(text)
    inputs = {"clk": 1, "rst": 1, "start": 1, "host_we": 1, "host_node": 2, "host_addr": 3}
    inputs["host_wdata"] = width
    outputs = {"busy": 1, "done": 1, "host_rdata": width, "cycles": 32}
    value = {
        "top": "host",
        "files": ["fabric.v"],
        "ports": [
            {"name": name, "direction": direction, "width": bits}
            for direction, ports in (("input", inputs), ("output", outputs))
            for name, bits in ports.items()
        ],
        "nodes": NODES,
        "width": width,
        "flits": FLITS,
        "send_base": 0,
        "recv_base": 4,
        "read_latency": 2,
        "predicted_cycles": CYCLES,
    }
    (folder / "manifest.json").write_text(json.dumps(value | manifest))
    return folder


def messages(width, seed=1):
    """Random words for every node."""
    source = random.Random(seed)
    return [[source.getrandbits(width) for _ in range(FLITS)] for _ in range(NODES)]


READ = [[4, 5], [0, 4, 1, 5], []]


def expect(sent):
    """The expected words at the addresses of `READ`."""
    folded = [sent[0][f] ^ sent[1][f] ^ sent[2][f] for f in range(FLITS)]
    return [folded, [sent[1][0], folded[0], sent[1][1], folded[1]], []]


@icarus
@pytest.mark.parametrize("width", [1, 8, 64, 65, 1024])
def test_icarus_reads_what_was_sent(width, tmp_path):
    sent = messages(width)
    result = run_icarus(write(tmp_path, width), sent, READ)
    assert [row.tolist() for row in result.words] == expect(sent)
    assert result.cycles == CYCLES
    assert result.words[0].dtype == (np.uint64 if width <= 64 else object)


@verilator
@pytest.mark.long
@pytest.mark.parametrize("width", [1, 8, 64, 65, 1024])
def test_verilator_agrees_with_icarus(width, tmp_path):
    sent, folder = messages(width), write(tmp_path, width)
    results = [run(folder, sent, READ, starts=3) for run in (run_icarus, run_verilator)]
    assert [row.tolist() for row in results[1].words] == expect(sent)
    assert results[0].cycles == results[1].cycles
    assert [row.tolist() for row in results[0].words] == [row.tolist() for row in results[1].words]


@icarus
def test_numpy_words_and_several_runs(tmp_path):
    sent = np.array(messages(32), dtype=np.uint64)
    result = run_icarus(write(tmp_path, 32), sent, [[4, 5]] * NODES, starts=3)
    assert np.array_equal(np.array(result.words), np.tile(np.bitwise_xor.reduce(sent), (NODES, 1)))


#: Each fault: the replaced text, and the message that must report it.
FAULTS = {
    "never done": (("last & busy", "1'b0"), r"busy is 1 and done is 0, 1007 edges after start"),
    "busy late": (("busy <= 1'b1;", ""), r"busy is 0 and done is 0 after the edge that took start"),
    "done stays": (
        ("done <= 1'b0;\n      cycles <= 32'd0;\n    end else", "cycles <= 32'd0;\n    end else"),
        r"busy is 1 and done is 1 after the edge that took start",
    ),
    "busy stays": (("busy <= 1'b0;\n      done <= 1'b1", "done <= 1'b1"), "busy is 1 while done"),
    "one too many": (
        ("cycles <= cycles + 1", "cycles <= cycles + 1 + last"),
        r"cycles is 7, not the 6 edges counted",
    ),
    "counts on": (
        ("if (busy) begin", "if (done) cycles <= cycles + 1;\n    if (busy) begin"),
        r"cycles is 7, no longer 6",
    ),
    "done is a pulse": (
        ("if (rst) begin", "if (done) done <= 1'b0;\n    if (rst) begin"),
        "before",
    ),
    "no reset": (
        ("if (rst) begin", "if (1'b0) begin"),
        r"busy is x and done is x before the first",
    ),
}


@icarus
@pytest.mark.parametrize("fault", FAULTS)
def test_broken_protocol_is_found(fault, tmp_path):
    edit, message = FAULTS[fault]
    with pytest.raises(AssertionError, match=rf"^FAIL .*{message}"):
        run_icarus(write(tmp_path, 4, edit=edit), messages(4), READ, starts=2)


@icarus
def test_wrong_prediction_is_found(tmp_path):
    folder = write(tmp_path, 4, predicted_cycles=CYCLES + 1)
    with pytest.raises(AssertionError, match=r"^FAIL 6 edges from start to done, not the 7 pred"):
        run_icarus(folder, messages(4), READ)


@icarus
def test_wrong_latency_shows_in_the_words(tmp_path):
    sent = messages(16)
    result = run_icarus(write(tmp_path, 16, read_latency=3), sent, READ)
    assert [row.tolist() for row in result.words] != expect(sent)


@icarus
def test_unknown_word_is_named(tmp_path):
    sent = messages(4)
    sent[2] = sent[2][:1]
    with pytest.raises(AssertionError, match=r"^word at node 0, address 5 is x$"):
        run_icarus(write(tmp_path, 4), sent, READ)


def test_misuse_is_reported(tmp_path):
    folder = write(tmp_path, 4)
    with pytest.raises(AssertionError, match=r"^words for 1 nodes, not for 3$"):
        run_icarus(folder, [[1]], READ)
    with pytest.raises(AssertionError, match=r"^address 8 of node 1 is too large$"):
        run_icarus(folder, messages(4), [[], [8], []])
    with pytest.raises(AssertionError, match=r"^word 16 is too wide$"):
        run_icarus(folder, [[16], [], []], READ)


@icarus
def test_icarus_lint(tmp_path):
    assert lint_icarus(write(tmp_path, 8)) == []
    broken = lint_icarus(write(tmp_path, 8, edit=("late <=", "lat <=")))
    assert any("lat" in line for line in broken)


@verilator
def test_verilator_lint(tmp_path):
    plain = write(tmp_path, 8, edit=("cycles[0]", "cycles[0] & !host_addr[1] | host_addr[1]"))
    assert lint_verilator(plain) == []
    (warning,) = lint_verilator(write(tmp_path, 8))
    assert "%Warning-UNUSEDSIGNAL" in warning
    assert "host_addr" in warning
    (error,) = lint_verilator(write(tmp_path, 8, edit=("late <=", "late <= <=")))
    assert error.startswith("%Error")
