"""External tools: where they are, which version they are, and running them.

A tool is looked up in this order: the environment variable that Amaranth uses for it (`YOSYS`,
`NEXTPNR_ICE40`, ..); the package from PyPI (its script beside the Python interpreter, or on the
search path); a program of its own name on the search path. The PyPI packages come first because
they are dependencies of ours, the same everywhere, while a program that happens to be installed may
be too old to understand our files.

The packages named YoWASP run WebAssembly. The first use of a tool compiles it, which takes up to
two minutes and may not happen twice at once: `require` sees to it, and says so. They cannot see
absolute paths under `/tmp`, so `run` starts a tool in its work folder and is given relative names.
"""

import contextlib
import errno
import functools
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from ..errors import MissingTool, WorkFailed
from . import processes
from .cache import Cache, size_limit
from .destinations import AnyPath
from .extras import how_to_install, installed
from .folders import require_room
from .notices import say
from .progress import progress_lines

__all__ = ["TOOLS", "Tool", "call", "env_var", "error_line", "find", "origin", "package_folder",
           "require", "run", "set_environment", "version"]  # fmt: skip


@dataclass(frozen=True)
class Tool:
    """A program we know how to get.

    Parameters
    ----------
    serves : str
        What it is needed for.
    install : str
        What a user does to get it.
    package_script : str or None
        The name of the same program as a PyPI package installs it.
    package : str or None
        That package, where its version is that of the program.
    """

    name: str
    serves: str
    install: str
    package_script: str | None = None
    package: str | None = None


def _yowasp(name: str, package: str, extra: str, serves: str) -> Tool:
    return Tool(name, serves, how_to_install(extra), f"yowasp-{name}", f"yowasp-{package}")


def _yosys() -> Tool:
    """Yosys: as machine code where there is a package of it, else as WebAssembly."""
    wasm = _yowasp("yosys", "yosys", "hardware", "synthesis")
    if installed("pyosys"):
        return replace(wasm, package_script="torusfabric-yosys", package="pyosys")
    return wasm


def _system(name: str, package: str, serves: str) -> Tool:
    return Tool(name, serves, f"install the package {package} of your system")


#: The router of Gowin devices, and its package.
GOWIN = "nextpnr-himbaechel-gowin"

#: Every external program we may run, by name.
TOOLS = {
    tool.name: tool
    for tool in (
        _yosys(),
        _yowasp("yosys-smtbmc", "yosys", "prove", "proofs"),
        _yowasp("sby", "yosys", "prove", "proofs"),
        Tool("z3", "proofs", how_to_install("prove"), "z3"),
        _yowasp("nextpnr-ice40", "nextpnr-ice40", "synthesis", "place and route, iCE40"),
        _yowasp("icepack", "nextpnr-ice40", "synthesis", "bitstreams, iCE40"),
        _yowasp("iceunpack", "nextpnr-ice40", "synthesis", "tests of bitstreams, iCE40"),
        _yowasp("nextpnr-ecp5", "nextpnr-ecp5", "synthesis", "place and route, ECP5"),
        _yowasp("ecppack", "nextpnr-ecp5", "synthesis", "bitstreams, ECP5"),
        _yowasp("ecpunpack", "nextpnr-ecp5", "synthesis", "tests of bitstreams, ECP5"),
        _yowasp(GOWIN, GOWIN, "gowin", "place and route, Gowin"),
        Tool("gowin_pack", "bitstreams, Gowin", how_to_install("gowin"), "gowin_pack", "Apycula"),
        _system("g++", "g++", "compiled simulation"),
        _system("iverilog", "iverilog", "benches, tests of the Verilog"),
        _system("vvp", "iverilog", "benches, tests of the Verilog"),
        _system("vcd2fst", "gtkwave", "waves as FST"),
        _system("icebox_vlog", "fpga-icestorm", "tests of bitstreams, iCE40"),
        _system("iceprog", "fpga-icestorm", "loading boards, iCE40"),
        _system("openFPGALoader", "openfpgaloader", "loading boards"),
        _system("dfu-util", "dfu-util", "loading boards over USB"),
        _system("openocd", "openocd", "loading boards over JTAG"),
        Tool("tinyprog", "loading boards, TinyFPGA", "pip install tinyprog"),
    )
}

#: Where a tool's variable is not its name in capitals.
_ENV_VARS = {"yosys-smtbmc": "SMTBMC", "g++": "CXX"}


def env_var(name: str) -> str:
    """The environment variable that names the program to use for a tool."""
    return _ENV_VARS.get(name) or name.upper().replace("-", "_").replace("+", "X")


#: Patterns of the lines of a tool's output that give the reason of a failure, best first.
_ERROR_LINES = (
    r"\bERROR: ",
    r"^%Error",
    r"\berror: ",
    r"(?i)\berror\b",
    r"(?i)\bfatal\b|exception",
)

#: What tools say, in whatever line, when memory is at its end; of WebAssembly it is the last one.
_NO_MEMORY = re.compile(
    r"(?i)(can ?not|unable to|failed to) allocate|bad_alloc|out of memory|memory exhausted|"
    r"memory allocation|\bMemoryError\b|failed to grow|insufficient memory"
)

#: Statuses of what was killed: of the process itself, and of a shell or WebAssembly around it.
_KILLED = (-9, 137)


def find(name: str) -> str | None:
    """The path of a tool, or None if it is not installed."""
    if named := os.environ.get(env_var(name)):
        return shutil.which(named) or _beside_python(named)
    script = TOOLS[name].package_script if name in TOOLS else None
    if script and (path := _beside_python(script) or shutil.which(script)):
        return path
    return shutil.which(name)


def _beside_python(script: str) -> str | None:
    """The path of a script in the folders of this Python, which need not be on the search path."""
    folders = {os.path.dirname(sys.executable), sysconfig.get_path("scripts")}
    return shutil.which(script, path=os.pathsep.join(sorted(filter(None, folders))))


def package_folder(name: str) -> Path | None:
    """Where an installed Python package is, which brings programs along; it is not imported."""
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def set_environment(environ: MutableMapping[str, str] = os.environ) -> None:
    """Let Amaranth's own builds find what `find` finds, by setting the variables not yet set."""
    for tool in TOOLS.values():
        if (
            tool.package_script
            and not environ.get(env_var(tool.name))
            and (path := find(tool.name))
        ):
            environ[env_var(tool.name)] = path


def require(name: str) -> str:
    """The path of a tool, ready to be run, even several times at once.

    Raises
    ------
    MissingTool
        If it is not installed; says how to get it.
    """
    path = find(name)
    if path is None:
        variable = env_var(name)
        named = os.environ.get(variable)
        detail = f" as {named!r} (set by {variable})" if named else ""
        install = TOOLS[name].install if name in TOOLS else f"install {name}"
        raise MissingTool(f"Tool {name} was not found{detail}: {install}")
    if os.path.basename(path).startswith("yowasp-"):
        size_limit()  # one that is no size is an error each time, not only before the first use
        _warm(name, path)
    return path


@functools.cache
def _warm(name: str, path: str) -> None:
    """Let a package compile its tool, which writes in place: one process at a time."""
    waiting = lambda: say(f"waiting for another process, which prepares {name} or such a tool")
    what = f"preparing {name} for this machine, once, in a minute or two"
    with Cache().lock("warm", waiting=waiting), progress_lines(what):
        processes.run([path, "--version"])


def version(name: str) -> str:
    """The version of a tool, as text that differs where its results may.

    Raises
    ------
    MissingTool
        If it is not installed.
    """
    path = find(name) or require(name)
    return _package_version(name, path) or _ask_version(name, require(name))


@functools.cache
def _package_version(name: str, path: str) -> str | None:
    """Name and version of the package that installed a tool, if one for this Python did."""
    tool = TOOLS.get(name)
    if not (tool and tool.package and tool.package_script):
        return None
    if os.path.realpath(path) == os.path.realpath(_beside_python(tool.package_script) or ""):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return f"{tool.package} {importlib.metadata.version(tool.package)}"
    return None


@functools.cache
def _ask_version(name: str, path: str) -> str:
    flag = "-V" if name in ("iverilog", "vvp", "openFPGALoader", "dfu-util") else "--version"
    done = call(name, [path, flag])
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return lines[0] if lines else name


def run(
    name: str,
    args: Iterable[str],
    *,
    folder: AnyPath,
    log: str,
    what: str | None = None,
    makes: Iterable[str] = (),
    look: Callable[[], object] | None = None,
) -> str:
    """Run a tool in a folder, with its output kept in a log file there.

    Parameters
    ----------
    args : iterable of str
        Its arguments; names of files relative to `folder`.
    log : str
        The name of the log file in that folder.
    what : str, optional
        What it works on, for the message of an error.
    makes : iterable of str
        The files that it must leave in that folder.
    look : function of (), optional
        Called every second while it runs; what that raises ends it.

    Returns
    -------
    str
        Its output, standard output and standard error together.

    Raises
    ------
    MissingTool
        If it is not installed.
    WorkFailed
        If it fails; quotes the line that matters.
    """
    path, path_of_log = require(name), Path(folder, log)
    with open(path_of_log, "wb") as file:
        status = call(name, [path, *args], folder=folder, log=file, look=look).returncode
    output = path_of_log.read_text(encoding="utf-8", errors="replace")
    if status != 0:
        on = f" on {what}" if what else ""
        raise WorkFailed(f"{name} failed{on}: {error_line(output, status)} (log: {path_of_log})")
    for made in makes:
        if not Path(folder, made).is_file():
            raise WorkFailed(
                f"Tool {name} {origin(name, path)} must write {made}, not end without it "
                f"(log: {path_of_log})"
            )
    return output


def call(
    name: str,
    command: Sequence[str],
    *,
    folder: AnyPath | None = None,
    environ: Mapping[str, str] | None = None,
    log: IO[bytes] | None = None,
    look: Callable[[], object] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run the command of a tool as `processes.run` does, with an error that a user understands.

    Raises
    ------
    WorkFailed
        If it cannot be started, or there is no room for what it writes.
    """
    try:
        if folder is not None:
            require_room(folder)
        done = processes.run(command, folder=folder, environ=environ, log=log, look=look)
        if folder is not None:
            require_room(folder)
        return done
    except OSError as error:
        if error.errno == errno.ENOSPC or not Path(folder or ".").is_dir():
            raise
        where = origin(name, command[0])
        raise WorkFailed(
            f"Tool {name} {where} must be a program that runs, not fail to ({error.strerror})"
        ) from None


def origin(name: str, path: str) -> str:
    """Where a tool is, and the variable that says so, for a message."""
    variable = env_var(name)
    return f"({path}, set by {variable})" if os.environ.get(variable) else f"({path})"


def error_line(output: str, status: int = 1) -> str:
    """The line of a failed tool's output that gives the reason."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        if _NO_MEMORY.search(line):
            return f"there is too little memory ({line})"
    if status in _KILLED:
        return "it was killed, as the system does where there is too little memory"
    for pattern in _ERROR_LINES:
        for line in lines:
            if re.search(pattern, line):
                return line
    return lines[-1] if lines else f"exit status {status} without any output"
