"""Parts of vendors' families, and how large they are.

Sources: DS180 (7 series: slices times four tables and eight flip-flops), DS190 (Zynq-7000), DS890
and DS891 (UltraScale+, Zynq UltraScale+: CLB LUTs and flip-flops), CV-51001 (Cyclone V overview:
ALMs, M10K, DSP blocks), FPGA-DS-02049 and FPGA-DS-02086 (CrossLink-NX, CertusPro-NX),
DS1001 (GateMate CCGM1A1: two tables and two flip-flops a CPE), and the product table of Trion.
Block RAMs of Xilinx are counted in halves of 18 kbit, those of GateMate in halves of 20 kbit.
"""

from typing import NamedTuple

__all__ = ["PARTS", "Part"]


class Part(NamedTuple):
    """A part.

    Parameters
    ----------
    name : str
        Behind that of its family.
    capacity : dict of str to int
        Name of a field of `Cost` -> how many there are.
    """

    name: str
    capacity: dict[str, int]


def _xilinx(name: str, luts: int, blocks: int, dsps: int, urams: int = 0) -> Part:
    return Part(
        name, {"luts": luts, "ffs": 2 * luts, "brams": 2 * blocks, "urams": urams, "dsps": dsps}
    )


def _cyclone_v(name: str, alms: int, blocks: int, dsps: int) -> Part:
    sizes = {"luts": 2 * alms, "ffs": 4 * alms, "cells": alms, "brams": blocks, "dsps": dsps}
    return Part(name, sizes)


def _nexus(name: str, luts: int, blocks: int, large: int, dsps: int) -> Part:
    return Part(name, {"luts": luts, "ffs": luts, "brams": blocks, "sprams": large, "dsps": dsps})


def _efinix(name: str, cells: int, blocks: int) -> Part:
    return Part(name, {"luts": cells, "ffs": cells, "brams": blocks})


#: The parts of each family, the largest last.
PARTS = {
    "xilinx-7": (
        _xilinx("a35t", 20800, 50, 90),
        _xilinx("z020", 53200, 140, 220),
        _xilinx("a100t", 63400, 135, 240),
        _xilinx("a200t", 134600, 365, 740),
        _xilinx("k325t", 203800, 445, 840),
        _xilinx("v690t", 433200, 1470, 3600),
        _xilinx("v2000t", 1221600, 1292, 2160),
    ),
    "xilinx-us": (
        _xilinx("zu3eg", 70560, 216, 360),
        _xilinx("ku5p", 216960, 480, 1824, 64),
        _xilinx("zu9eg", 274080, 912, 2520),
        _xilinx("vu9p", 1182240, 2160, 6840, 960),
        _xilinx("vu13p", 1728000, 2688, 12288, 1280),
    ),
    "cyclone-v": (
        _cyclone_v("a4", 18480, 308, 66),
        _cyclone_v("se-a6", 41910, 553, 112),
        _cyclone_v("a9", 113560, 1220, 342),
    ),
    "nexus": (
        _nexus("lifcl-17", 13824, 24, 5, 24),
        _nexus("lifcl-40", 32256, 84, 2, 56),
        _nexus("lfcpnx-100", 79872, 208, 7, 156),
    ),
    "gatemate": (Part("a1", {"luts": 40960, "ffs": 40960, "brams": 64}),),
    "efinix": (
        _efinix("t8", 7384, 24),
        _efinix("t20", 19728, 204),
        _efinix("t120", 112128, 1056),
    ),
}
