"""Checks that all example applications have in common: reports, messages, files and Verilog."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

import torusfabric as tf

__all__ = ["ROOT", "change_job", "check_files", "check_refusal", "flip_lowest_bit",
           "page_has_output", "report_of", "simulate_in_icarus"]  # fmt: skip

ROOT = Path(__file__).parents[2]

sys.path.insert(0, str(ROOT / "examples"))

#: A bench of the emitted Verilog: it writes all words, starts the job, and prints all words.
BENCH = """
module bench;
  reg clk = 0, rst = 1, begin_job = 0, write = 0;
  reg [{bits}-1:0] place = 0;
  reg [31:0] words [0:{count} * {nodes} - 1];
  integer i;
  wire busy;
  wire [31:0] cycles;
  {declarations}
  always #5 clk = ~clk;
  fabric dut (.clk(clk), .rst(rst), .begin_job(begin_job), .busy(busy), .cycles(cycles),
    {connections});
  initial begin
    $readmemh("words.hex", words);
    repeat (4) @(negedge clk);
    rst = 0;
    write = 1;
    for (i = 0; i < {count}; i = i + 1) begin place = i; {sets} @(negedge clk); end
    write = 0;
    begin_job = 1;
    @(negedge clk) begin_job = 0;
    repeat (3) @(negedge clk);
    while (busy) @(negedge clk);
    $display("%0d", cycles);
    for (i = 0; i < {count}; i = i + 1) begin
      place = i; repeat (2) @(negedge clk); $display("{formats}", {reads});
    end
    $finish;
  end
endmodule
"""


def report_of(capsys, run, *words):
    """Return the report of a command that succeeds."""
    assert run.main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def page_has_output(capsys, run, page, *words):
    """Return the printed report of a command, which must be in a tutorial."""
    assert run.main([*words]) == 0
    printed = capsys.readouterr().out
    text = (ROOT / "docs" / "tutorials" / page).read_text(encoding="utf-8")
    assert textwrap.indent(printed, " " * 4) in text
    return printed


def change_job(monkeypatch, run, change):
    """Let a command see the report of a job as `change` returns it."""
    right = run.run_job
    monkeypatch.setattr(run, "run_job", lambda *given, **options: change(right(*given, **options)))


def flip_lowest_bit(monkeypatch, run, node, address):
    """Let a command read a word of a node with one wrong bit."""

    def flip(job):
        job.words[node, address] ^= 1
        return job

    change_job(monkeypatch, run, flip)


def check_refusal(capsys, run, message, *words):
    """Check that a command refuses bad sizes in one line with a message."""
    assert run.main([*words]) == 1
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def check_files(capsys, run, folder, *words):
    """Check that a command writes the design and the picture."""
    files = [folder / "design.v", folder / "picture.svg"]
    report_of(capsys, run, *words, "--verilog", str(files[0]), "--picture", str(files[1]))
    assert "module element (" in files[0].read_text()
    assert "<svg" in files[1].read_text()


def simulate_in_icarus(system, words, folder):
    """Run a job of the emitted Verilog in Icarus; return its cycles, and as many words as written.

    Parameters
    ----------
    system : System
        The fabric with its elements, whose words have 32 bits.
    words : ndarray of int, shape (nodes, words)
        The words of the elements.
    folder : Path
        The folder for files.
    """
    nodes, count = range(len(words)), words.shape[1]
    (folder / "words.hex").write_text("\n".join(f"{word:x}" for word in words.ravel().tolist()))
    (folder / "design.v").write_text(tf.emit(system).text)
    (folder / "bench.v").write_text(BENCH.format(
        bits=max((count - 1).bit_length(), 1), count=count, nodes=len(words),
        declarations=" ".join(f"reg [31:0] set_{k}; wire [31:0] read_{k};" for k in nodes),
        connections=", ".join(
            f".element_address_{k}(place), .element_write_{k}(write), "
            f".element_write_data_{k}(set_{k}), .element_read_data_{k}(read_{k})" for k in nodes),
        sets=" ".join(f"set_{k} = words[{k * count} + i];" for k in nodes),
        formats=" ".join(["%h"] * len(words)), reads=", ".join(f"read_{k}" for k in nodes),
    ))  # fmt: skip
    for command in (["iverilog", "-g2005", "-o", "bench.vvp", "bench.v", "design.v"],
                    ["vvp", "bench.vvp"]):  # fmt: skip
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    cycles, *rows = (line.split() for line in done.stdout.splitlines() if line[:1].isalnum())
    return int(cycles[0]), np.array([[int(word, 16) for word in row] for row in rows[:count]]).T
