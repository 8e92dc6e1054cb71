"""The host port behind a standard bus: registers, and windows onto the memories of the nodes."""

from .protocol import DATA_BITS, Bus
from .register_map import RegisterMap, Window

__all__ = ["DATA_BITS", "Bus", "RegisterMap", "Window"]
