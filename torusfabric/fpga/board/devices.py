"""What the devices of boards have, by the names that Amaranth's platforms give them."""

from dataclasses import dataclass
from typing import Any

from ..synthesis.target import TARGETS

__all__ = ["Device", "device_of"]


@dataclass(frozen=True)
class Device:
    """What a device has.

    Parameters
    ----------
    bram_bits, bram_width : int
        Bits of a block RAM, and how many of them can be read at once.
    lutram_bits : int
        Bits that tables can hold as memory.
    """

    flip_flops: int
    brams: int
    bram_bits: int
    bram_width: int
    lutram_bits: int = 0

    @property
    def bits(self) -> int:
        """All bits that it can hold at most."""
        return self.flip_flops + self.brams * self.bram_bits + self.lutram_bits


#: Block RAMs of each family: bits, and how many of them can be read at once.
_BRAMS = {"ice40": (4096, 16), "ecp5": (18432, 36), "gowin": (18432, 36)}


def _of_target(name: str) -> Device:
    """A device that is a target of synthesis too."""
    target = TARGETS[name]
    capacity, lutrams = target.capacity, 64 * target.capacity.get("lutrams", 0)
    return Device(capacity["ffs"], capacity["brams"], *_BRAMS[target.family], lutrams)


_DEVICES = {
    "iCE40HX1K": Device(1280, 16, *_BRAMS["ice40"]),
    "iCE40HX8K": _of_target("ice40-hx8k"),
    "iCE40LP8K": _of_target("ice40-hx8k"),
    "iCE40UP5K": _of_target("ice40-up5k"),
    **{
        f"{family}-{size}F": _of_target(f"ecp5-{size.lower()}k")
        for family in ("LFE5U", "LFE5UM", "LFE5UM5G")
        for size in ("25", "45", "85")
    },
    "GW1NR-LV9QN88PC6/I5": _of_target("gowin-gw1nr-9"),
}


def device_of(platform: Any) -> Device | None:
    """The device of a platform, or None if it is not known here."""
    name = getattr(platform, "device", None) or getattr(platform, "part", None)
    return _DEVICES.get(name) if isinstance(name, str) else None
