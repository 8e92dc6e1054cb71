"""Proofs by induction over time, by Yosys and an SMT solver.

A *harness* is a Verilog module `harness` around a module of the fabric. Its assertions have names.
They are proved for all times in two parts: they hold in the first cycles from any state, and
wherever they have held for so many cycles they hold in the next. Where any state can be the first,
and what they look back to is enough, one step from any state says both.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..errors import WorkFailed
from ..toolchain import tools
from ..toolchain.cache import Cache, digest
from ..toolchain.folders import work_folder
from .report import Counterexample

__all__ = ["Harness", "Solved", "solve"]

#: How proofs are done: what was proved in another way is proved anew.
OWN_TEXT = Path(__file__).read_text(encoding="utf-8")

#: From Verilog to the input of the solver.
SCRIPT = """\
read_verilog -sv -formal modules.v
proc
{shown}
read_verilog -sv -formal harness.sv
hierarchy -top harness
proc
flatten
memory_collect
memory_map -rom-only
opt_expr
opt_clean
async2sync
formalff -clk2ff -setundef
opt_expr -full
techmap t:$shr t:$shift t:$shiftx t:$shl t:$mul
opt_expr -full
techmap
opt -full
opt_clean
check -assert
write_smt2 -wires harness.smt2
"""

#: The line with which smtbmc names the assertion that fails.
FAILED = r"Assert failed in \S+: (?:\S*?[. ])?(\w+)(?: \(|$)"


@dataclass(frozen=True)
class Harness:
    """Assertions about a module.

    Parameters
    ----------
    modules : str
        The text of the module, and of those inside it.
    cycles : int
        For which they are assumed, when they are proved for the next.
    shown : tuple of str
        Registers inside that the harness sees as ports, each ``module/register``.
    depth : int
        Cycles from the first that are searched for a counterexample where the proof fails; 0 where
        any state can be the first.
    """

    name: str
    text: str
    modules: str
    properties: int
    cycles: int
    says: str
    shown: tuple[str, ...] = ()
    depth: int = 0


class Solved(NamedTuple):
    """The assertion that does not hold, if any, and the seconds of the proof when it was done."""

    failed: Counterexample | None
    seconds: float


def solve(harness: Harness, cache: Cache | None = None) -> Solved:
    """Prove, or refute, the assertions of a harness.

    Parameters
    ----------
    cache : Cache, optional
        What was proved before; only proofs are kept.

    Raises
    ------
    MissingTool
        If Yosys or the solver is not installed.
    WorkFailed
        If a tool fails.
    """
    versions = [tools.version(name) for name in ("yosys", "yosys-smtbmc", "z3")]
    key = digest("proof", OWN_TEXT, _script(harness), harness.text, harness.modules,
                 harness.cycles, versions)  # fmt: skip
    if cache and (known := cache.get(key)):
        return Solved(None, known["seconds"])
    began = time.monotonic()
    with work_folder("prove") as folder:
        (folder / "harness.sv").write_text(harness.text, encoding="utf-8")
        (folder / "modules.v").write_text(harness.modules, encoding="utf-8")
        # Write the input of the solver.
        (folder / "script.ys").write_text(_script(harness), encoding="utf-8")
        tools.run("yosys", ["-q", "-s", "script.ys"], folder=folder, log="yosys.log",
                  what=harness.name, makes=["harness.smt2"])  # fmt: skip
        failed = _refuted(folder, harness)
    seconds = round(time.monotonic() - began, 2)
    if cache and failed is None:
        cache.put(key, {"seconds": seconds})
    return Solved(failed, seconds)


def _refuted(folder: Path, harness: Harness) -> Counterexample | None:
    """Return an assertion that does not hold, or cannot be proved, if any."""
    cycles = harness.cycles
    if not harness.depth:
        at_once = ("--noinit", "-t", f"{cycles - 1}:{cycles}")
        if _check(folder, harness, at_once) is None:
            return None
    if failed := _check(folder, harness, ("-t", str(cycles + 1))):
        return failed
    # The state in which a step begins need not be reached, unless any state can be the first.
    unknown = "cannot be proved by induction" if harness.depth else "does not hold"
    failed = _check(folder, harness, ("-i", "-t", str(cycles)), unknown)
    if failed and harness.depth:
        failed = _check(folder, harness, ("-t", str(harness.depth))) or failed
    return failed


def _script(harness: Harness) -> str:
    """The commands that convert a harness."""
    shown = f"expose {' '.join(harness.shown)}" if harness.shown else ""
    return SCRIPT.format(shown=shown)


def _check(
    folder: Path, harness: Harness, how: Iterable[str], what: str = "does not hold"
) -> Counterexample | None:
    """Run the solver; returns the assertion that fails, with what is said of it, or None."""
    solver = Path(tools.require("z3"))
    environ = dict(os.environ)
    environ["PATH"] = os.pathsep.join((str(solver.parent), environ.get("PATH", "")))
    command = [tools.require("yosys-smtbmc"), "-s", "z3", "--dump-vcd", "trace.vcd"]
    done = tools.call(
        "yosys-smtbmc", [*command, *how, "harness.smt2"], folder=folder, environ=environ
    )
    output = done.stdout + done.stderr
    if done.returncode == 0 and re.search("Status: (PASSED|passed)", output):
        return None
    if "Assert failed" not in output:
        reason = tools.error_line(output, done.returncode)
        raise WorkFailed(f"yosys-smtbmc failed on {harness.name}: {reason}")
    found, cycles = re.search(FAILED, output, re.M), re.findall(r"in step (\d+)", output)
    name, cycle = found[1] if found else "an assertion", int(cycles[-1]) if cycles else 0
    wave = folder / "trace.vcd"
    return Counterexample(
        harness.name,
        name,
        cycle,
        f"{harness.name}: {name} {what} (cycle {cycle})",
        wave.read_text(encoding="utf-8") if wave.is_file() else "",
    )
