"""Hardware: builds what a program says, and decides nothing."""

from .fabric import Fabric

__all__ = ["Fabric"]
