"""Waves: which lines of a fabric they show, and the files they are kept in.

Every engine writes a VCD file in its own way, but all of them show the same lines: inside a scope
``node_K`` for each node, what leaves and enters by each of its ports, and beside these scopes, what
concerns the whole. So one module suffices to write a save file of GTKWave, and to make FST of them.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...errors import InputError, MissingTool, WorkFailed
from ...rtl.fabric import Fabric
from ...rtl.netlist import Fixed, Instance, Netlist, Part, Role
from ...toolchain.files import finished, write_file
from ...toolchain.owned import is_like
from .gtkwave import gtkwave_text

__all__ = ["FORMATS", "WaveLine", "check_wave", "recording", "wave_lines"]

#: The endings of file names, one for each format.
FORMATS = (".vcd", ".fst")


class WaveLine(NamedTuple):
    """A line that waves show, named as in the file.

    Parameters
    ----------
    node : int or None
        Whose it is; None for what concerns the whole.
    name : str
        In the scope of its node.
    part : Part
        The bits of a net that it shows.
    """

    node: int | None
    name: str
    part: Part

    @property
    def scope(self) -> str:
        """The scope of its node; empty for the whole."""
        return "" if self.node is None else f"node_{self.node}"


def wave_lines(fabric: Fabric) -> list[WaveLine]:
    """What waves show of a fabric: the whole, then node by node.

    Parameters
    ----------
    fabric : Fabric

    Returns
    -------
    list of WaveLine
        The inputs of the whole come first. Of each node: its out-ports, its in-ports, and what
        else it gives.
    """
    netlist = fabric.netlist
    whole = dict.fromkeys([*netlist.inputs, *netlist.nets])
    ports: dict[int, list[WaveLine]] = {}
    others: dict[int, list[WaveLine]] = {}
    for instance in netlist.instances:
        node = instance.node
        if node is not None:
            ports.setdefault(node, []).extend(_port_lines(instance, netlist, fabric))
            others.setdefault(node, []).extend(_other_lines(instance, netlist))
            for net in instance.outputs.values():
                whole.pop(net, None)
    found = [WaveLine(None, net, *netlist.whole(net)) for net in whole if net not in netlist.wired]
    for node in sorted(ports):
        found += ports[node] + others[node]
    return found


def _port_lines(instance: Instance, netlist: Netlist, fabric: Fabric) -> Iterator[WaveLine]:
    """The lines of the ports of a node, if an instance is its router."""
    if instance.role is not Role.ROUTER:
        return
    sent = netlist.words(instance.outputs["tx"], fabric.width)
    for kind, parts in (("out", sent), ("in", instance.inputs.get("rx", ()))):
        for name, part in zip(fabric.program.topology.port_names, parts, strict=False):
            if not isinstance(part, Fixed):
                yield WaveLine(instance.node, f"{kind}_{name}", part)


def _other_lines(instance: Instance, netlist: Netlist) -> Iterator[WaveLine]:
    """The lines of all else that an instance of a node gives."""
    routing = instance.role is Role.ROUTER
    nets = {net for port, net in instance.outputs.items() if not (routing and port == "tx")}
    for net in sorted(nets):
        yield WaveLine(instance.node, net.removesuffix(f"_{instance.node}"), *netlist.whole(net))


def check_wave(wave: str | Path | None) -> None:
    """See that waves can be written to a file of this name, if there is one.

    Parameters
    ----------
    wave : str or Path or None

    Raises
    ------
    InputError
        If it has the name of no format we know.
    MissingTool
        If that format needs a tool that is not installed.
    """
    if wave is None:
        return
    suffix = Path(wave).suffix
    if suffix not in FORMATS:
        raise InputError(f"File of waves must end in {' or '.join(FORMATS)}, not {Path(wave).name}")
    from ...toolchain import tools  # here, since few runs write waves

    if suffix == ".fst" and tools.find("vcd2fst") is None:
        raise MissingTool(
            "Tool vcd2fst was not found: install the package gtkwave of your system, "
            "or name a file that ends in .vcd"
        )


@contextlib.contextmanager
def recording(wave: str | Path | None, fabric: Fabric) -> Iterator[str | None]:
    """A place for an engine to write a VCD file, which becomes the file of waves in the end.

    A save file of GTKWave is written beside it, with the ending ``.gtkw``. If the fabric does not
    come to an end, the waves are kept, for they show why; if anything else fails, nothing is left.

    Parameters
    ----------
    wave : str or Path or None
        The file of waves.
    fabric : Fabric

    Yields
    ------
    str or None
        Where to write; None without a file of waves.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    if wave is None:
        yield None
        return
    check_wave(wave)
    wave, failure = Path(wave), None
    try:
        with finished(wave) as written:
            try:
                yield str(written)
            except WorkFailed as error:
                failure = error
            shown = gtkwave_text(written, wave, fabric.program.topology, wave_lines(fabric))
            if wave.suffix == ".fst":
                from .fst import convert

                convert(written)
            # A view that GTKWave has saved since, as the user wants it, stays.
            if is_like(wave.with_suffix(".gtkw"), "[dumpfile]"):
                write_file(wave.with_suffix(".gtkw"), shown, errors="surrogateescape")
    except OSError as error:
        raise InputError(f"File of waves must be writable, not {wave} ({error.strerror})") from None
    if failure is not None:
        raise failure
