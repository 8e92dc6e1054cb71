"""Delay lines."""

from amaranth.hdl import Const, Module, Signal, Value

__all__ = ["delayed", "pulsed"]


def delayed(m: Module, value: Value, cycles: int) -> Value:
    """A value some cycles later; a constant, or one of no bits, stays what it is."""
    if isinstance(value, Const) or not len(value):
        return value
    name = value.name.removesuffix("_later") + "_later" if isinstance(value, Signal) else "later"
    for _ in range(cycles):
        later = Signal(len(value), reset_less=True, name=name)
        m.d.sync += later.eq(value)
        value = later
    return value


def pulsed(m: Module, pulse: Value, cycles: int, *, name: str) -> Value:
    """Pulses some cycles later; none that is on its way outlives a reset."""
    for _ in range(cycles):
        later = Signal(len(pulse), name=name)
        m.d.sync += later.eq(pulse)
        pulse = later
    return pulse
