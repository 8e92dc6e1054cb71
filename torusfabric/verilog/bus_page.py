"""A page about a fabric behind a bus for people, beside its manifest.

All of it is in the manifest; ``docs/reference/bus.md`` explains it at length.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..toolchain.quoting import markdown_code
from .tables import table

__all__ = ["BUS_PAGE", "bus_page"]

#: The file that it becomes.
BUS_PAGE = "bus.md"

ADDRESSES = """\
Offsets count bytes, of {size:#x} in all; an address of this bus counts {unit}.
Bus words are {data_width} bits{flits}.
"""

BURSTS = (
    "Registers{load} are behind `s_axil`, windows behind `s_axi`, whose beats are {beats} bits: "
    "{flits} each.\n"
)


def bus_page(manifest: Mapping[str, Any]) -> str:
    """The page about a fabric behind a bus.

    Parameters
    ----------
    manifest : mapping
        Of the fabric.

    Returns
    -------
    str
        In Markdown.
    """
    bus, beat = manifest["bus"], manifest.get("beat", 1)
    bits = beat * manifest["width"]
    count = -(-bits // bus["data_width"])
    what = "flits" if beat == 1 else f"beats of {beat} flits"
    words = "one" if count == 1 else f"{count}, the low bits first"
    beats = bus.get("beat_width")
    text = ADDRESSES.format(
        **bus,
        flits=f"; {what} are {bits}, each in {words}" if bus["windows"] else "",
        unit="bytes" if bus["address_unit"] == 1 else "bus words",
    )
    load = " and `load`" if "load" in bus["windows"] else ""
    bursts = (
        [BURSTS.format(load=load, beats=beats, flits="a flit" if beat == 1 else f"{beat} flits")]
        if beats
        else []
    )
    return "\n".join(
        [
            f"# The fabric `{manifest['top']}` behind {bus['protocol']}",
            "",
            f"Made by {markdown_code(manifest['command'])}.",
            "",
            *table(("port", "", "bits", ""), _ports(manifest["ports"])),
            "",
            text,
            *bursts,
            *table(("offset", "register", "access", "bits", ""), _fields(bus["registers"])),
            "",
            *(
                [*table(("offset", "window", "access", ""), _windows(bus["windows"])), ""]
                if bus["windows"]
                else []
            ),
        ]
    )


def _ports(ports: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    for name, port in ports.items():
        yield f"`{name}`", port["direction"], str(port["width"]), port["meaning"]


def _fields(registers: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    """The fields of registers as rows, each register once."""
    for name, register in registers.items():
        first = (f"`{register['offset']:#04x}`", f"`{name}`", register["access"])
        for field, bits in register["fields"].items():
            low, high = bits["low"], bits["low"] + bits["width"] - 1
            what = bits["meaning"] if field == "value" else f"`{field}`: {bits['meaning']}"
            yield *first, str(low) if low == high else f"{high}..{low}", what
            first = ("", "", "")


def _windows(windows: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    for name, window in windows.items():
        places = (
            f"flit f of node n at {window['offset']:#x} + {window['stride']:#x} n + "
            f"{window['flit_bytes']} f; n < {window['nodes']}, f < {window['flits']}"
        )
        if name == "load":
            places = f"word k at {window['offset']:#x} + 4 k; k < {window['flits']}"
        yield (
            f"`{window['offset']:#x}`",
            f"`{name}`",
            window["access"],
            (f"{window['meaning']}: {places}"),
        )
