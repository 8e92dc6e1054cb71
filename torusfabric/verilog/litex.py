"""Import of an exported fabric into a LiteX SoC.

The user is the script of a SoC, which calls `add_fabric`. The fabric is behind Wishbone (``--bus
wishbone``) or has streams (``--top stream``). Streams become LiteX endpoints. Registers become CSRs
of the SoC. The fabric itself has their hardware, at the addresses of 32-bit CSRs, and LiteX gets
only their addresses, for ``csr.h``, ``csr.csv`` and the like.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError, MissingTool
from ..toolchain.public import public
from .design import VERILOG_FILE

try:
    from litex.gen import LiteXModule
    from litex.soc.integration.soc import SoCCSRRegion, SoCError, SoCRegion
    from litex.soc.interconnect import stream, wishbone
    from litex.soc.interconnect.csr import CSRField, CSRStatus, CSRStorage
    from migen import ClockSignal, Instance, Module, ResetSignal, Signal
except ImportError as missing:
    raise MissingTool(f"Package {missing.name} was not found: pip install litex migen") from None

__all__ = ["LiteXFabric", "add_fabric"]

#: Bits of a CSR, and of a bus word.
WORD_BITS = 32


#: AXI4-Stream signals that every endpoint has -> names of the same signals in LiteX.
HANDSHAKE = {"tvalid": "valid", "tready": "ready", "tlast": "last"}


class LiteXFabric(LiteXModule):
    """A fabric, exported by `torusfabric verilog` with ``--bus wishbone`` or ``--top stream``.

    Parameters
    ----------
    platform : GenericPlatform
        Platform of the SoC, to which the Verilog is added.
    folder : str or Path
        Folder of the export, with ``manifest.json``.

    Attributes
    ----------
    bus : wishbone.Interface
        Wishbone port; only behind a bus.
    ev : Module
        ``ev.irq`` is the interrupt; only behind a bus. Registers of the fabric enable and clear it.
    sink, source : list of stream.Endpoint
        Only with streams: endpoint k of `sink` takes the words that node k sends, endpoint k of
        `source` has the words that it receives. Fields are ``data`` and ``last``, and ``keep``,
        ``dest`` and ``id`` as far as the fabric has them.
    command, status : stream.Endpoint
        Commands and statuses of runs; only with streams and no bus, and if runs need commands.
    busy, done, cycles, error : Signal
        State of the fabric; only with streams and no bus.
    manifest : dict
        Contents of ``manifest.json``.
    """

    def __init__(self, platform: Any, folder: str | Path) -> None:
        self.manifest = _read_manifest(Path(folder))
        ports = self.manifest["ports"]
        signals = {"clk": ClockSignal(), "rst": ResetSignal(), **self._add_streams()}
        if "bus" in self.manifest:
            signals |= self._add_bus()
        for name in ports.keys() - signals.keys():
            setattr(self, name, made := Signal(ports[name]["width"], name=name))
            signals[name] = made
        pins = {f"{ports[name]['direction'][0]}_{name}": signals[name] for name in ports}
        self.specials += Instance(self.manifest["top"], name="the_fabric", **pins)
        for name in self.manifest["files"]:
            if name == VERILOG_FILE:
                _add_source(platform, Path(folder).resolve() / name, self.manifest["modules"])

    def _add_bus(self) -> dict[str, Any]:
        """Make the bus interface and the interrupt, and return their signals.

        The result is a dict: port of the Verilog -> signal of LiteX.
        """
        self.bus = wishbone.Interface(data_width=WORD_BITS, adr_width=30, addressing="word")
        self.ev = Module()
        self.ev.irq = Signal()
        names = ("cyc", "stb", "we", "sel", "dat_w", "dat_r", "ack", "err")
        signals = {f"wb_{name}": getattr(self.bus, name) for name in names}
        signals["wb_adr"] = self.bus.adr[: self.manifest["ports"]["wb_adr"]["width"]]
        return signals | {"irq": self.ev.irq}

    def _add_streams(self) -> dict[str, Any]:
        """Make the LiteX endpoints of all streams, and return their signals.

        The result is a dict: port of the Verilog -> signal of LiteX.
        """
        bits: dict[str, dict[str, int]] = {}
        for name, port in self.manifest["ports"].items():
            if port["protocol"] == "axi4-stream":
                prefix, _, signal = name.rpartition("_")
                bits.setdefault(prefix, {})[signal] = port["width"]
        found: dict[str, list[Any]] = {"s_axis": [], "m_axis": []}
        signals: dict[str, Any] = {}
        for prefix, widths in bits.items():
            data = {name: width for name, width in widths.items() if name not in HANDSHAKE}
            made = stream.Endpoint([(name[1:], width) for name, width in data.items()])
            signals |= {
                f"{prefix}_{name}": getattr(made, HANDSHAKE.get(name, name[1:])) for name in widths
            }
            side, _, what = prefix.rpartition("_")
            if what.isdecimal():
                # A node that only relays has no streams; its place in the list is None.
                found[side] += [None] * (int(what) - len(found[side])) + [made]
            else:
                setattr(self, {"cmd": "command"}.get(what, what), made)
        if found["s_axis"]:
            self.sink, self.source = found["s_axis"], found["m_axis"]
        return signals

    @property
    def csrs(self) -> list[Any]:
        """The registers as CSRs of LiteX, in the order of their addresses.

        Addresses without a register have an unused CSR. Why: LiteX gives CSRs consecutive
        addresses, and these must be the addresses of the registers in the fabric.
        """
        found, offset = [], 0
        for name, register in self.manifest["bus"]["registers"].items():
            while offset < register["offset"]:
                found.append(CSRStatus(WORD_BITS, name=f"reserved_{offset:02x}"))
                offset += WORD_BITS // 8
            found.append(_make_csr(name, register))
            offset += WORD_BITS // 8
        return found


@public
def add_fabric(soc: Any, name: str, folder: str | Path, origin: int | None = None) -> LiteXFabric:
    """Add a fabric to a SoC: the module, its region on the bus, its CSRs and its interrupt.

    A fabric without a bus is added as a module only.

    Parameters
    ----------
    soc : SoC
        SoC under construction.
    name : str
        Name of the module and of the bus region, and beginning of the names of CSRs.
    folder : str or Path
        Folder of the export by `torusfabric verilog`.
    origin : int, optional
        Address on the bus; a free address by default.

    Raises
    ------
    InputError
        If the folder has no fabric behind Wishbone or with streams, if modules of the fabric have
        the names of modules of another source, or if the bus has no room.
    """
    module = LiteXFabric(soc.platform, folder)
    soc.add_module(name, module)
    if "bus" not in module.manifest:
        return module
    region = SoCRegion(origin=origin, size=module.manifest["bus"]["size"], cached=False)
    with _reserved_csrs(soc):
        if origin is None:
            region = _free_region(soc, name, region.size)
        _require_free_region(soc, name, region)
        soc.bus.add_slave(name, module.bus, region)
    placed = SoCCSRRegion(soc.bus.regions[name].origin, WORD_BITS, module.csrs)
    soc.csr.add_region(name, placed)
    for window, facts in module.manifest["bus"]["windows"].items():
        for what in ("offset", "stride", "flit_bytes"):
            soc.add_constant(f"{name}_{window}_{what}", facts[what])
    if soc.irq.enabled:
        soc.irq.add(name, use_loc_if_exists=True)
    return module


@contextmanager
def _reserved_csrs(soc: Any) -> Iterator[None]:
    """Reserve the region of the CSRs of a SoC on its bus.

    Why: LiteX allocates this region only at the end, and the fabric could otherwise get its
    addresses.
    """
    regions = soc.bus.regions
    if "csr" in regions:
        yield
        return
    size = 2 ** (soc.csr.address_width + 2)
    regions["csr"] = SoCRegion(origin=soc.mem_map["csr"], size=size, cached=False)
    try:
        yield
    finally:
        del regions["csr"]


def _free_region(soc: Any, name: str, size: int) -> Any:
    """Return a free region of `size` bytes on the bus of `soc`, aligned as LiteX wants.

    `name` is the name of the region, for an error.
    """
    try:
        found = soc.bus.alloc_region(name, size, cached=False)
    except SoCError:
        raise InputError(
            f"The bus of the SoC has no {size} bytes free for {name}; give an origin"
        ) from None
    return found


def _require_free_region(soc: Any, name: str, region: Any) -> None:
    """Refuse a region, to be called `name`, that overlaps another region on the bus of `soc`.

    Why: LiteX may notice an overlap only at the end.
    """
    for other, taken in soc.bus.regions.items():
        if soc.bus.check_regions_overlap({name: region, other: taken}):
            raise InputError(
                f"The region of {name} at {region.origin:#x} overlaps that of {other} "
                f"({taken.origin:#x}, {taken.size:#x} bytes); choose another origin"
            )


def _add_source(platform: Any, file: Path, modules: Sequence[str]) -> None:
    """Add a Verilog file to a platform, unless it has the same text already.

    `modules` are the names of the modules that the file defines. A name that another source defines
    is refused.
    """
    text = file.read_text(encoding="utf-8")
    for path, language, *_ in platform.sources:
        if language not in ("verilog", "systemverilog") or not Path(path).is_file():
            continue
        other = Path(path).read_text(encoding="utf-8", errors="replace")
        if other == text:
            return
        # A platform knows its other sources as text only, so module names are found by a pattern.
        if both := set(modules) & set(re.findall(r"^\s*module\s+(\w+)", other, re.M)):
            raise InputError(
                f"Modules of {file} and {path} have the same name, {min(both)}; write each fabric "
                "of a design with another --prefix"
            )
    platform.add_source(str(file))


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder, or refuse a fabric that LiteX cannot use."""
    file = folder / "manifest.json"
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        protocol = manifest["bus"]["protocol"] if "bus" in manifest else manifest["interface"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"File {file} is not the manifest of a fabric ({error}); give manifest.json of "
            "torusfabric verilog"
        ) from None
    if protocol not in ("wishbone", "stream"):
        raise InputError(f"Fabric for LiteX must be behind wishbone, not {protocol}: {file}")
    if any(port["role"] == "clock" and name != "clk" for name, port in manifest["ports"].items()):
        raise InputError(
            f"LiteX serves fabrics of one clock, not per-node ({file}); write it again with "
            "--clocks one"
        )
    result: dict[str, Any] = manifest
    return result


def _make_csr(name: str, register: dict[str, Any]) -> Any:
    """Return a CSR of LiteX, called `name`, for a register in the manifest.

    A register with the single field ``value`` becomes a CSR without fields.
    """
    make = CSRStatus if register["access"] == "read" else CSRStorage
    fields, text = register["fields"], register["meaning"]
    if "value" in fields:
        bits = fields["value"]
        return make(bits["width"], reset=bits["reset"], name=name, description=text)
    parts = [
        CSRField(
            part, size=bits["width"], offset=bits["low"], reset=bits["reset"],
            description=bits["meaning"],
        )
        for part, bits in fields.items()
    ]  # fmt: skip
    return make(fields=parts, name=name, description=text)
