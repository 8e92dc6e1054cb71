"""Which entry a start finds: the form of a mode for a length, and for a root."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View

from .layout import TableLayout

__all__ = ["found_entry"]


def found_entry(
    m: Module,
    layout: TableLayout,
    starts: Sequence[Value],
    there: Value,
    chosen: Mapping[str, Value],
    beyond: Value | None = None,
) -> tuple[Value, Value, Value]:
    """The entry of a start: the first of those besides that of the mode itself.

    Parameters
    ----------
    starts : sequence of Value
        What a start is compared with, of each entry.
    there : Value
        A bit for each entry that may run.
    chosen : dict of str to Value
        The mode, length and root.
    beyond : Value, optional
        Whether the root has higher bits, so that there is no such node.

    Returns
    -------
    entry : Value
    modes : Value
        A bit for each mode that may run.
    no_root : Value
        Whether the mode knows other roots, but not this one.
    """
    compared = [View(layout.start, word) for word in starts]
    mode, entry = chosen["mode"], Signal.like(chosen["mode"], name="entry")
    found: Value = mode
    by_root = Signal(len(compared), name="root_chosen")
    of_root: list[Value] = []
    for k, start in reversed([*enumerate(compared)]):
        fits = there[k] & start.further & (start.mode == mode)
        if "root" in layout.start.members:
            fits &= ~start.chosen | (start.root == chosen["root"])
            m.d.comb += by_root[k].eq(start.chosen)
            of_root.append(fits)
        found = Mux(fits & (chosen["length"] >= start.least), k, found)
    m.d.comb += entry.eq(found)
    modes = there & ~Cat(start.further for start in compared)
    if not of_root:
        return entry, modes, Const(0, 1)
    known = Cat(of_root).any() | (chosen["root"] == 0)
    if beyond is not None:
        known &= ~beyond
    return entry, modes, by_root.bit_select(mode, 1) & ~known
