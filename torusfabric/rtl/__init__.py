"""Hardware: builds what a program says, and decides nothing."""

from .fabric import Fabric, Top

__all__ = ["Fabric", "Top"]
