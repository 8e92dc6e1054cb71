"""What a netlist uses of a device."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

__all__ = ["Cost"]


@dataclass(frozen=True)
class Cost:
    """What a netlist uses of a device.

    Parameters
    ----------
    luts : int
        Tables, of four inputs or of as many as the family has, with those used as adders (two for
        each ECP5 CCU2C) or as memory (six for each ECP5 TRELLIS_DPR16X4: four hold 16 x 4 bits, two
        give their place to its write port; eight for each Gowin RAM16SDP4, beside which the other
        four of its block cannot be used).
    ffs, brams : int
        Flip-flops and block RAMs, those of Xilinx and GateMate in halves.
    lutrams : int
        Memories of 16 x 4 bits made of tables; of Xilinx the tables.
    carries, muxes : int
        Bits of carry chains and wide multiplexers: both come free with their tables.
    dsps, sprams : int
        Multipliers and single-port RAMs.
    cells : int
        iCE40: logic cells of one table and one flip-flop each; a flip-flop shares a cell only
        with the table that feeds it alone, a carry bit only with the table on the same inputs.
        Cyclone V: adaptive logic modules, at most.
    urams : int
        Ultra RAMs, of 288 kbit.
    """

    luts: int = 0
    ffs: int = 0
    brams: int = 0
    lutrams: int = 0
    carries: int = 0
    muxes: int = 0
    dsps: int = 0
    sprams: int = 0
    cells: int = 0
    urams: int = 0

    def plus(self, other: Cost, times: int = 1) -> Cost:
        """Sum of costs, the other one a number of times."""
        return Cost(*(getattr(self, f.name) + times * getattr(other, f.name) for f in fields(self)))

    def to_json(self) -> dict[str, int]:
        """As a plain dict."""
        return asdict(self)
