"""Adapters: the circuits between a core and its surroundings, one folder for each adapter.

========== ==================================================================================
folder     the core is reached
========== ==================================================================================
`host`     through one memory-mapped port for all nodes
`bare`     through ports of each node
`bus`      through AXI4, AXI4-Lite or Wishbone: a host port, or the starts of runs with streams
`streams`  through AXI4-Stream ports of each node
`loading`  as in `host` or `streams`; its tables are RAMs, filled from an image
`boards`   as in `host` or `bus`; its nodes are spread over several boards
========== ==================================================================================

The folder of an adapter holds everything that belongs to it: hardware, proof, simulation, emitted
files and command-line options. The hardware around a core is a subclass of
`torusfabric.rtl.front.Front`. An adapter that adds options to commands declares them as a
`torusfabric.contract.adapter.Adapter`.
"""

from importlib import import_module
from typing import Any

from .boards.options import ADAPTER as BOARDS

__all__ = ["ADAPTERS", "adapter_object"]

#: The adapters that add options to commands, those closer to the core first.
ADAPTERS = (BOARDS,)

#: Module and name of each object that `Fabric` takes from an adapter: the front of each top, then
#: the objects for loadable tables and for a bus.
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
    """Return a class or function of an adapter, such as `HostFront` for the top ``host``.

    `name` is a key of `OBJECTS`. Only this call imports the module of the class or function, so a
    fabric imports no adapter that it does not use.
    """
    module, attribute = OBJECTS[name]
    return getattr(import_module(f"{__name__}.{module}"), attribute)
