"""Targets: the devices and processes for which a fabric can be synthesized.

The users are the commands ``synth`` and ``build``. A new device of a known family is one line of
`TARGETS`, with the capacities that nextpnr reports; or one line of `PARTS`, if only the vendor
places and routes for it.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ...errors import WorkFailed
from ...toolchain.values import unknown_name_error
from .family import Cost, Family

__all__ = ["PARTS", "PINS", "SILICON", "TARGETS", "Target", "find_target"]

#: File of pin constraints.
PINS = "pins.cst"

#: Name of the family of silicon, and of the target with cells of no process.
SILICON = "asic"


@dataclass(frozen=True)
class Target:
    """An FPGA device for which fabrics can be synthesized.

    Parameters
    ----------
    name : str
        Name that users give.
    family : str
        Key of `FAMILIES`.
    device : tuple of str
        Arguments of the place-and-route tool for the device and its package.
    capacity : dict of str to int
        Field of `Cost` -> number of these resources in the device.
    pins : str
        Text of the file `PINS`, which assigns pins to the ports of the harness that place and
        route needs; empty if the tool needs no such file.
    liberty : str, optional
        Silicon: Liberty file with the cells of a process; None for those of no process.
    """

    name: str
    family: str
    device: tuple[str, ...]
    capacity: dict[str, int] = field(hash=False)
    pins: str = ""
    liberty: str | None = None

    @property
    def device_family(self) -> Family:
        """The family of the device."""
        from .families import FAMILIES  # here, so that listing names does not import Amaranth
        from .silicon import family_of_liberty

        if self.family == SILICON:
            return family_of_liberty(self.liberty)
        return FAMILIES[self.family]

    def module_cost(self, module: dict[str, Any], children: Collection[str]) -> Cost:
        """Return the cost of a module, without that of the modules inside of it.

        Parameters
        ----------
        module : dict
            Entry of ``modules`` in a netlist that yosys wrote as JSON.
        children : collection of str
            Names of these modules, which appear as types of cells; they are left out.

        Raises
        ------
        WorkFailed
            If the module has a cell type that the family does not know.
        """
        cost, tools = Cost(), self.device_family
        kinds = Counter(cell["type"] for cell in module["cells"].values())
        for kind, count in kinds.items():
            if kind in children or kind == "$scopeinfo":
                continue
            price = tools.cell_cost(kind)
            if price is None:
                raise WorkFailed(f"Cells must be those of {self.family}, not {kind}")
            cost = cost.plus(price, count)
        return cost.plus(tools.module_costs(module)) if tools.module_costs else cost

    def misfit_reason(self, cost: Cost) -> str | None:
        """Return the reason why a design with this cost does not fit; None if it fits.

        The reason lists all resources of which the device has too few.
        """
        more = [
            f"{getattr(cost, name)} {_WORDS[name]} of {most}"
            for name, most in self.capacity.items()
            if getattr(cost, name) > most
        ]
        return f"does not fit: {', '.join(more)}" if more else None


#: Field of `Cost` -> name in messages.
_WORDS = {
    "luts": "LUTs",
    "ffs": "flip-flops",
    "cells": "logic cells",
    "brams": "block RAMs",
    "lutrams": "LUT RAMs",
    "dsps": "multipliers",
    "sprams": "single-port RAMs",
    "urams": "ultra RAMs",
}


def _ice40_target(name: str, device: str, package: str, cells: int, **others: int) -> Target:
    capacity = {"luts": cells, "ffs": cells, "cells": cells, "dsps": 0, "sprams": 0, **others}
    return Target(name, "ice40", (f"--{device}", "--package", package), capacity)


def _ecp5_target(name: str, device: str, package: str, luts: int, **others: int) -> Target:
    capacity = {"luts": luts, "ffs": luts, "lutrams": luts // 8, **others}
    return Target(name, "ecp5", (f"--{device}", "--package", package, "--speed", "6"), capacity)


#: Options of nextpnr for Gowin: the chip family, and the file of pin constraints.
_GOWIN_OPTIONS = "--vopt", "family=GW1N-9C", "--vopt", f"cst={PINS}"

#: A part: the end of its name, after the family, and its capacity.
_Part: TypeAlias = tuple[str, dict[str, int]]


def _xilinx_part(name: str, luts: int, blocks: int, dsps: int, urams: int = 0) -> _Part:
    return name, {"luts": luts, "ffs": 2 * luts, "brams": 2 * blocks, "urams": urams, "dsps": dsps}


def _cyclone_v_part(name: str, alms: int, blocks: int, dsps: int) -> _Part:
    sizes = {"luts": 2 * alms, "ffs": 4 * alms, "cells": alms, "brams": blocks, "dsps": dsps}
    return name, sizes


def _nexus_part(name: str, luts: int, blocks: int, large: int, dsps: int) -> _Part:
    return (name, {"luts": luts, "ffs": luts, "brams": blocks, "sprams": large, "dsps": dsps})


def _efinix_part(name: str, cells: int, blocks: int) -> _Part:
    return (name, {"luts": cells, "ffs": cells, "brams": blocks})


#: Capacities of parts for which only the vendor places and routes, the largest last. Sources: DS180
#: (7 series: slices times four LUTs and eight flip-flops), DS190 (Zynq-7000), DS890 and DS891
#: (UltraScale+, Zynq UltraScale+: CLB LUTs and flip-flops), CV-51001 (Cyclone V overview: ALMs,
#: M10K, DSP blocks), FPGA-DS-02049 and FPGA-DS-02086 (CrossLink-NX, CertusPro-NX), DS1001 (GateMate
#: CCGM1A1: two LUTs and two flip-flops a CPE), and the product table of Trion. Block RAMs of Xilinx
#: count in halves of 18 kbit, those of GateMate in halves of 20 kbit.
PARTS: dict[str, tuple[_Part, ...]] = {
    "xilinx-7": (
        _xilinx_part("a35t", 20800, 50, 90),
        _xilinx_part("z020", 53200, 140, 220),
        _xilinx_part("a100t", 63400, 135, 240),
        _xilinx_part("a200t", 134600, 365, 740),
        _xilinx_part("k325t", 203800, 445, 840),
        _xilinx_part("v690t", 433200, 1470, 3600),
        _xilinx_part("v2000t", 1221600, 1292, 2160),
    ),
    "xilinx-us": (
        _xilinx_part("zu3eg", 70560, 216, 360),
        _xilinx_part("ku5p", 216960, 480, 1824, 64),
        _xilinx_part("zu9eg", 274080, 912, 2520),
        _xilinx_part("vu9p", 1182240, 2160, 6840, 960),
        _xilinx_part("vu13p", 1728000, 2688, 12288, 1280),
    ),
    "cyclone-v": (
        _cyclone_v_part("a4", 18480, 308, 66),
        _cyclone_v_part("se-a6", 41910, 553, 112),
        _cyclone_v_part("a9", 113560, 1220, 342),
    ),
    "nexus": (
        _nexus_part("lifcl-17", 13824, 24, 5, 24),
        _nexus_part("lifcl-40", 32256, 84, 2, 56),
        _nexus_part("lfcpnx-100", 79872, 208, 7, 156),
    ),
    "gatemate": (("a1", {"luts": 40960, "ffs": 40960, "brams": 64}),),
    "efinix": (
        _efinix_part("t8", 7384, 24),
        _efinix_part("t20", 19728, 204),
        _efinix_part("t120", 112128, 1056),
    ),
}

#: All devices by name.
TARGETS = {
    target.name: target
    for target in (
        _ice40_target("ice40-hx8k", "hx8k", "ct256", 7680, brams=32),
        _ice40_target("ice40-up5k", "up5k", "sg48", 5280, brams=30, dsps=8, sprams=4),
        _ecp5_target("ecp5-25k", "25k", "CABGA381", 24288, brams=56, dsps=28),
        _ecp5_target("ecp5-45k", "45k", "CABGA381", 43848, brams=108, dsps=72),
        _ecp5_target("ecp5-85k", "85k", "CABGA381", 83640, brams=208, dsps=156),
        Target(  # Tang Nano 9K
            "gowin-gw1nr-9",
            "gowin",
            ("--device", "GW1NR-LV9QN88PC6/I5", *_GOWIN_OPTIONS),
            {"luts": 8640, "ffs": 6480, "brams": 26, "lutrams": 270, "dsps": 20},
            'IO_LOC "clk" 52;\nIO_LOC "scan" 3;\nIO_LOC "pin" 10;\n',
        ),
        *(
            Target(f"{family}-{part}", family, (), capacity)
            for family, parts in PARTS.items()
            for part, capacity in parts
        ),
        Target(SILICON, SILICON, (), {}),
    )
}


def find_target(name: str) -> Target:
    """Return the target with a name; the name of a family in `PARTS` means its largest part.

    The name ``asic`` means silicon with cells of no process, and ``asic:FILE`` with those of a
    Liberty file.

    Raises
    ------
    InputError
        If no target has the name, or the Liberty file is not usable.

    Examples
    --------
    >>> find_target("xilinx-us").name
    'xilinx-us-vu13p'
    """
    if isinstance(name, str) and name.startswith(f"{SILICON}:"):
        target = Target(name, SILICON, (), {}, liberty=name.partition(":")[2])
        target.device_family  # noqa: B018 (raises if the file is not usable)
        return target
    if isinstance(name, str) and name in PARTS:
        name = f"{name}-{PARTS[name][-1][0]}"
    if not isinstance(name, str) or name not in TARGETS:
        raise unknown_name_error("Target", name, [*TARGETS, *PARTS])
    return TARGETS[name]
