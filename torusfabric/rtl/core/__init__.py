"""The core: the hardware of a program, and nothing else.

Nodes (router, operators, readers, memories), the links between them, and one sequencer are built
from the fields of a program. The core knows no host, bus, packet, image or board: adapters stand on
its ports.

Modules, from the program to the netlist:

- `rows`: the fields of all forms, one after another.
- `kinds`: which nodes do the same, and the variants that each may carry out.
- `places`: where a bit of a value lies: a constant, a column of the sequencer, a table at the node.
- `families`: which kinds of nodes share a module, and the words that each has at its inputs.
- `part`: the base class of the modules of a node, and the multiplexers in them.
- `router`: how out-ports and operators choose their words, and the two modules.
- `store_plan`, `store`: where words are stored and read, and the module.
- `memory_port`, `direct_port`, `run_port`: what adapters stand on.
- `slots`, `sequencer`: the one controller that steps all nodes through the program.
- `split`: memories of which other sections are written and read during a run.
- `room`: tables that are loaded.
- `core`: the netlist of everything.
"""

from .core import Core

__all__ = ["Core"]
