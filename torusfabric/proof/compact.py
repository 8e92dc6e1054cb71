"""Text with generate loops beside that without: that they are the same hardware."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .gates import Bit, GateText, TopInstance
from .report import refuted

if TYPE_CHECKING:
    from ..verilog.design import Design

__all__ = ["check_same_hardware"]


def check_same_hardware(loops: Design, text: GateText, plain: Design, other: GateText) -> int:
    """Check that a compact text has the modules, instances, contents and wires of the plain one.

    Parameters
    ----------
    loops, plain : Design
        Both texts.
    text, other : GateText
        What they are read as.

    Returns
    -------
    int
        How many pins are compared.
    """
    for name in {*loops.modules, *plain.modules} - {loops.top}:
        if loops.modules.get(name) != plain.modules.get(name):
            raise refuted("loops", name, f"{name} must be the same in loops and without")
    for name in sorted({*text.instances, *other.instances}):
        one, two = (each.instances.get(name) for each in (text, other))
        if one is None or two is None or (one.module, one.rom) != (two.module, two.rom):
            what = "of the same module and contents in loops and without"
            raise refuted("loops", name, f"Instance {name} must be {what}")
    # Nets are numbered otherwise: which number stands for which is the same everywhere.
    there: dict[Bit, Bit] = {}
    back: dict[Bit, Bit] = {}
    count = 0
    for (pin, here), (_, wired) in zip(_pins(text), _pins(other), strict=True):
        for bit, wanted in zip(here, wired, strict=True):
            known = there.setdefault(bit, wanted), back.setdefault(wanted, bit)
            if known != (wanted, bit) or (isinstance(bit, str) and bit != wanted):
                raise refuted("loops", pin, f"{pin} must be wired alike in loops and without")
            count += 1
    return count


def _pins(text: GateText) -> Iterator[tuple[str, list[Bit]]]:
    """The ports, and the pins of instances, in one order for both texts."""
    for ports in (text.inputs, text.outputs):
        yield from sorted(ports.items())
    instances: dict[str, TopInstance] = text.instances
    for name in sorted(instances):
        yield from ((f"{name}.{port}", bits) for port, bits in sorted(instances[name].pins.items()))
