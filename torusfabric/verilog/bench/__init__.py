"""The cocotb bench beside an export: plain files, which read the manifest when they run."""

from collections.abc import Mapping
from pathlib import Path

__all__ = ["bench_files", "bench_names"]

#: Where the files are here, and in the folder of an export.
SOURCE, FOLDER = Path(__file__).with_name("files"), "bench"

#: What all benches have.
COMMON = ("Makefile", "collectives.py", "runs.py", "stalls.py", "test_fabric.py")

#: What drives each interface.
PORTS = {
    "host": {"fabric_port.py": "ports/host.py", "direct_port.py": "direct_port.py"},
    "stream": {
        "test_fabric.py": "test_streams.py",
        "stream_port.py": "stream_port.py",
        "packets.py": "../packets.py",
    },
    "memories": {"fabric_port.py": "ports/memories.py", "direct_port.py": "direct_port.py"},
    "streams": {"fabric_port.py": "ports/streams.py", "direct_port.py": "direct_port.py"},
    "wishbone": {"fabric_port.py": "ports/wishbone.py", "bus_port.py": "bus_port.py"},
    "axi-lite": {"fabric_port.py": "ports/axi_lite.py", "bus_port.py": "bus_port.py"},
}


def bench_names(interface: str) -> list[str]:
    """The files of the bench of a bus, or of what else a fabric is driven by.

    Examples
    --------
    >>> bench_names("host")
    ['bench/Makefile', 'bench/collectives.py', 'bench/direct_port.py', 'bench/fabric_port.py', \
'bench/runs.py', 'bench/stalls.py', 'bench/test_fabric.py']
    """
    return [f"{FOLDER}/{name}" for name in sorted(_sources(interface))]


def bench_files(interface: str, top: str) -> dict[str, str]:
    """The texts of the bench of an interface.

    Parameters
    ----------
    top : str
        The name of the top module.
    """
    texts = {
        f"{FOLDER}/{name}": SOURCE.joinpath(source).read_text(encoding="utf-8")
        for name, source in _sources(interface).items()
    }
    makefile = f"{FOLDER}/Makefile"
    return texts | {makefile: texts[makefile].replace("{top}", top)}


def _sources(interface: str) -> Mapping[str, str]:
    """Where the text of each file is, by its name."""
    return dict(zip(COMMON, COMMON, strict=True)) | PORTS[interface]
