"""Adapters: capabilities around the core, a folder each.

A folder has the hardware, the proofs, the simulation, the files and the options of its adapter.
What it adds to commands, it declares; see `torusfabric.contract.adapter`.
"""

from .boards.options import ADAPTER as BOARDS

__all__ = ["ADAPTERS"]

#: All adapters, those closer to the core first.
ADAPTERS = (BOARDS,)
