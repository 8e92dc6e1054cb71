"""Adapters: capabilities around the core, a folder each.

A folder has the hardware, the proofs, the simulation, the files and the options of its adapter.
What it adds to commands, it declares; see `torusfabric.contract.adapter`. What it puts before a
core is a front; see `torusfabric.rtl.front`.
"""

from importlib import import_module
from typing import Any

from .boards.options import ADAPTER as BOARDS

__all__ = ["ADAPTERS", "adapter_object"]

#: All adapters, those closer to the core first.
ADAPTERS = (BOARDS,)

#: The front of each top, and what else the choices of a fabric ask for: module and object.
OBJECTS = {
    "host": ("host.front", "HostFront"),
    "core": ("bare.front", "BareFront"),
    "stream": ("streams.front", "StreamFront"),
    "loaded": ("loading.front", "LoadedFront"),
    "tables": ("loading.hardware", "make_tables"),
    "behind a bus": ("bus.front", "BusFront"),
    "bus": ("bus.options", "Bus"),
}


def adapter_object(name: str) -> Any:
    """Return an object of an adapter, imported now."""
    module, attribute = OBJECTS[name]
    return getattr(import_module(f"{__name__}.{module}"), attribute)
