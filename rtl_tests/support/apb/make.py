"""From the choices of a command to a fabric behind APB4."""

from .hardware import ApbSystem

__all__ = ["make_system"]


def make_system(make, choices):
    """Make a fabric, and put it behind the bus."""
    return ApbSystem(make(), choices["apb_waits"] or 0)
