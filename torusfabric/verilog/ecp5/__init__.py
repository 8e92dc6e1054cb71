"""Modules in a form for ECP5, of its cells: the usual one is for devices with tables alone."""

from ...rtl.chosen_sum import ChosenSum
from ...rtl.modules import SharedModule
from ...rtl.multiplexer import Multiplexer
from .multiplexers import multiplexer_body
from .sums import sum_body

__all__ = ["ECP5", "ecp5_body"]

#: What is defined for the text to have this form.
ECP5 = "TORUSFABRIC_ECP5"


def ecp5_body(module: SharedModule) -> str | None:
    """The body of a module for ECP5, without its ports; None where its usual one is as good."""
    if isinstance(module, Multiplexer):
        return multiplexer_body(module)
    return sum_body(module) if isinstance(module, ChosenSum) else None
