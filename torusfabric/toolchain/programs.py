"""The external programs that may be run, and how a user gets them."""

from dataclasses import dataclass, replace

from .extras import how_to_install, installed

__all__ = ["TOOLS", "Tool", "env_var"]


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
        That package, where the script is one of ours.
    """

    name: str
    serves: str
    install: str
    package_script: str | None = None
    package: str | None = None


def _yowasp(name: str, extra: str, serves: str) -> Tool:
    return Tool(name, serves, how_to_install(extra), f"yowasp-{name}")


def _yosys() -> Tool:
    """Yosys: as machine code where there is a package of it, else as WebAssembly."""
    wasm = _yowasp("yosys", "hardware", "synthesis")
    if installed("pyosys"):
        return replace(wasm, package_script="torusfabric-yosys", package="pyosys")
    return wasm


def _system(name: str, package: str, serves: str) -> Tool:
    return Tool(name, serves, f"install the package {package} of your system")


#: Every external program we may run, by name.
TOOLS = {
    tool.name: tool
    for tool in (
        _yosys(),
        _yowasp("yosys-smtbmc", "prove", "proofs"),
        _yowasp("sby", "prove", "proofs"),
        Tool("z3", "proofs", how_to_install("prove"), "z3"),
        _yowasp("nextpnr-ice40", "synthesis", "place and route, iCE40"),
        _yowasp("icepack", "synthesis", "bitstreams, iCE40"),
        _yowasp("iceunpack", "synthesis", "tests of bitstreams, iCE40"),
        _yowasp("nextpnr-ecp5", "synthesis", "place and route, ECP5"),
        _yowasp("ecppack", "synthesis", "bitstreams, ECP5"),
        _yowasp("ecpunpack", "synthesis", "tests of bitstreams, ECP5"),
        _yowasp("nextpnr-himbaechel-gowin", "gowin", "place and route, Gowin"),
        Tool("gowin_pack", "bitstreams, Gowin", how_to_install("gowin"), "gowin_pack"),
        _system("g++", "g++", "compiled simulation"),
        _system("iverilog", "iverilog", "benches, tests of the Verilog"),
        _system("vvp", "iverilog", "benches, tests of the Verilog"),
        _system("vcd2fst", "gtkwave", "waves as FST"),
        _system("icebox_vlog", "fpga-icestorm", "tests of bitstreams, iCE40"),
        _system("iceprog", "fpga-icestorm", "loading boards, iCE40"),
        _system("openFPGALoader", "openfpgaloader", "loading boards"),
        _system("dfu-util", "dfu-util", "loading boards over USB"),
    )
}

#: Where a tool's variable is not its name in capitals.
_ENV_VARS = {"yosys-smtbmc": "SMTBMC", "g++": "CXX"}


def env_var(name: str) -> str:
    """The environment variable that names the program to use for a tool."""
    return _ENV_VARS.get(name) or name.upper().replace("-", "_").replace("+", "X")
