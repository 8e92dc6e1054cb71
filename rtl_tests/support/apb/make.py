"""Construction of a fabric behind APB4 from the choices of a command."""

from .hardware import ApbSystem

__all__ = ["make_system"]


def make_system(make, choices):
    """Make a fabric, and put it behind APB4."""
    return ApbSystem(make(), choices["apb_waits"] or 0)
