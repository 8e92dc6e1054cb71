"""Runs of emitted Verilog in Icarus with given values for the inputs in every cycle.

The bench knows only the ports in `manifest.json`. Inputs change after a falling edge of the clock;
outputs are sampled at a falling edge, before the inputs change.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["needs_icarus", "run_vectors"]

needs_icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog")

BENCH = """\
module bench;
  reg clk = 0;
  reg [{bits}-1:0] given [0:{count}-1];
  reg [{bits}-1:0] now = 0;
{wires}
  integer step, out;
  {top} dut ({pins});
  initial begin
    $readmemh("given.hex", given);
    out = $fopen("shown.txt", "w");
    for (step = 0; step < {count}; step = step + 1) begin
      #5 now = given[step];
      #5 clk = 1;
      #5 clk = 0;
      #0 $fdisplay(out, "{formats}"{shown});
    end
    $fclose(out);
    $finish;
  end
endmodule
"""


def run_vectors(folder, work, steps):
    """Run the top of a folder, one clock cycle a step.

    Parameters
    ----------
    folder : path
        Folder with `manifest.json` and the files that it lists.
    work : path
        Folder for files of the bench.
    steps : list of dict of str to int
        Values of inputs in each step; an input without a value is 0.

    Returns
    -------
    list of dict of str to int
        Values of outputs after each step; None for a value with an unknown bit.
    """
    folder, work = Path(folder), Path(work)
    work.mkdir(exist_ok=True, parents=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    ports = {n: p for n, p in manifest["ports"].items() if p["protocol"] != "clock"}
    clocks = [n for n, p in manifest["ports"].items() if p["protocol"] == "clock"]
    inputs = {n: p["width"] for n, p in ports.items() if p["direction"] == "input"}
    outputs = {n: p["width"] for n, p in ports.items() if p["direction"] == "output"}
    pins, low = [f".{name}(clk)" for name in clocks], 0
    for name, width in inputs.items():
        pins.append(f".{name}(now[{low + width - 1}:{low}])")
        low += width
    pins += [f".{name}({name})" for name in outputs]
    text = BENCH.format(
        bits=low,
        count=len(steps),
        wires="\n".join(f"  wire [{width}-1:0] {name};" for name, width in outputs.items()),
        top=manifest["top"],
        pins=", ".join(pins),
        formats=" ".join(["%h"] * len(outputs)),
        shown="".join(f", {name}" for name in outputs),
    )
    (work / "bench.v").write_text(text)
    (work / "given.hex").write_text("".join(_hex(inputs, step) for step in steps))
    sources = [str(path.resolve()) for path in sorted(folder.glob("*.v"))]
    _call(["iverilog", "-g2005", "-s", "bench", "-o", "bench.vvp", "bench.v", *sources], work)
    _call(["vvp", "-n", "bench.vvp"], work)
    lines = (work / "shown.txt").read_text().splitlines()
    return [dict(zip(outputs, map(_number, line.split()), strict=True)) for line in lines]


def _hex(inputs, step):
    """Return a line of the memory of the bench."""
    assert not step.keys() - inputs.keys(), step
    value, low = 0, 0
    for name, width in inputs.items():
        value |= (int(step.get(name, 0)) & ((1 << width) - 1)) << low
        low += width
    return f"{value:x}\n"


def _number(text):
    """Return a value, or None if a bit is unknown."""
    try:
        return int(text, 16)
    except ValueError:
        return None


def _call(command, work):
    done = subprocess.run(command, cwd=work, capture_output=True, text=True)
    assert not done.returncode, done.stderr
