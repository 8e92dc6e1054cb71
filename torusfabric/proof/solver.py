"""Proof of a harness by k-induction, with Yosys and the SMT solver z3.

A *harness* is a Verilog module `harness` around a module of the fabric, with named assertions. The
proof has two parts. Base: the assertions hold in the first k cycles. Step: in any k + 1 consecutive
cycles, if the assertions hold in the first k, they hold in the last. If any state can be the first
one (`depth` 0), a single check from an arbitrary state proves both.
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

__all__ = ["Harness", "HarnessResult", "prove_harness"]

#: The source of this module; it is in the cache key, so a change of method repeats all proofs.
SOLVER_SOURCE = Path(__file__).read_text(encoding="utf-8")

#: Yosys script that converts a harness from Verilog to SMT-LIB.
YOSYS_SCRIPT = """\
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

#: Pattern of the line in which smtbmc names a failed assertion.
FAILED_ASSERTION = r"Assert failed in \S+: (?:\S*?[. ])?(\w+)(?: \(|$)"


@dataclass(frozen=True)
class Harness:
    """A Verilog module around a module of the fabric, with assertions about it.

    The assertions are proved by induction over time. Base: they hold in the first k cycles. Step:
    if they hold in k cycles, they hold in the next one.

    Parameters
    ----------
    name : str
        Name of the module, for messages.
    text : str
        SystemVerilog of the harness.
    modules : str
        Verilog of the module and of all modules inside it.
    properties : int
        Number of assertions.
    cycles : int
        The number k of the induction.
    statement : str
        The proved statement, in one line.
    shown : tuple of str
        Internal registers that become ports for the harness, each as ``module/register``.
    depth : int
        Cycles after reset that are searched for a counterexample if the step fails; 0 if any state
        can be the first one.
    """

    name: str
    text: str
    modules: str
    properties: int
    cycles: int
    statement: str
    shown: tuple[str, ...] = ()
    depth: int = 0


class HarnessResult(NamedTuple):
    """Result of a harness.

    It has the counterexample for the assertion that fails, or None if all hold, and the seconds
    that the first proof took.
    """

    failed: Counterexample | None
    seconds: float


def prove_harness(harness: Harness, cache: Cache | None = None) -> HarnessResult:
    """Prove or refute the assertions of a harness.

    A harness is a Verilog module around a module of the fabric, with assertions about it.

    Parameters
    ----------
    cache : Cache, optional
        Store of earlier proofs; refutations are never stored.

    Raises
    ------
    MissingTool
        If Yosys or z3 is not installed.
    WorkFailed
        If a tool fails.
    """
    versions = [tools.version(name) for name in ("yosys", "yosys-smtbmc", "z3")]
    key = digest("proof", SOLVER_SOURCE, _yosys_script(harness), harness.text, harness.modules,
                 harness.cycles, versions)  # fmt: skip
    if cache and (known := cache.get(key)):
        return HarnessResult(None, known["seconds"])
    began = time.monotonic()
    with work_folder("prove") as folder:
        (folder / "harness.sv").write_text(harness.text, encoding="utf-8")
        (folder / "modules.v").write_text(harness.modules, encoding="utf-8")
        (folder / "script.ys").write_text(_yosys_script(harness), encoding="utf-8")
        tools.run("yosys", ["-q", "-s", "script.ys"], folder=folder, log="yosys.log",
                  what=harness.name, makes=["harness.smt2"])  # fmt: skip
        failed = _failed_assertion(folder, harness)
    seconds = round(time.monotonic() - began, 2)
    if cache and failed is None:
        cache.put(key, {"seconds": seconds})
    return HarnessResult(failed, seconds)


def _failed_assertion(folder: Path, harness: Harness) -> Counterexample | None:
    """Return a counterexample for an assertion that fails; None if all assertions hold.

    Two checks are run: of the first cycles after a reset (base), and of any k + 1 cycles in which
    the assertions hold in the first k (step). If any state can be the first one, one check is
    enough. The files of the harness are in `folder`.
    """
    cycles = harness.cycles
    if not harness.depth:
        at_once = ("--noinit", "-t", f"{cycles - 1}:{cycles}")
        if _run_smtbmc(folder, harness, at_once) is None:
            return None
    if failed := _run_smtbmc(folder, harness, ("-t", str(cycles + 1))):
        return failed
    # A failed step refutes nothing if its first state is unreachable; then only say "cannot prove".
    unknown = "cannot be proved by induction" if harness.depth else "does not hold"
    failed = _run_smtbmc(folder, harness, ("-i", "-t", str(cycles)), unknown)
    if failed and harness.depth:
        failed = _run_smtbmc(folder, harness, ("-t", str(harness.depth))) or failed
    return failed


def _yosys_script(harness: Harness) -> str:
    """Return the Yosys script for a harness."""
    shown = f"expose {' '.join(harness.shown)}" if harness.shown else ""
    return YOSYS_SCRIPT.format(shown=shown)


def _run_smtbmc(
    folder: Path, harness: Harness, how: Iterable[str], what: str = "does not hold"
) -> Counterexample | None:
    """Run smtbmc, the program of Yosys that calls the SMT solver, on a harness.

    The result is a counterexample for an assertion that fails, or None if all hold.

    Parameters
    ----------
    folder : Path
        Folder with the files of the harness.
    harness : Harness
        The harness, whose name stands in messages.
    how : iterable of str
        Options of smtbmc that select a part of the induction: its base, its step, or both in one
        check.
    what : str
        Verb phrase for the message about a failed assertion.
    """
    solver = Path(tools.require("z3"))
    environ = dict(os.environ)
    environ["PATH"] = os.pathsep.join((str(solver.parent), environ.get("PATH", "")))
    command = [tools.require("yosys-smtbmc"), "-s", "z3", "--dump-vcd", "trace.vcd"]
    done = tools.run_command(
        "yosys-smtbmc", [*command, *how, "harness.smt2"], folder=folder, environ=environ
    )
    output = done.stdout + done.stderr
    if done.returncode == 0 and re.search("Status: (PASSED|passed)", output):
        return None
    if "Assert failed" not in output:
        reason = tools.error_line(output, done.returncode)
        raise WorkFailed(f"yosys-smtbmc failed on {harness.name}: {reason}")
    found, cycles = re.search(FAILED_ASSERTION, output, re.M), re.findall(r"in step (\d+)", output)
    name, cycle = found[1] if found else "an assertion", int(cycles[-1]) if cycles else 0
    wave = folder / "trace.vcd"
    return Counterexample(
        harness.name,
        name,
        cycle,
        f"{harness.name}: {name} {what} (cycle {cycle})",
        wave.read_text(encoding="utf-8") if wave.is_file() else "",
    )
