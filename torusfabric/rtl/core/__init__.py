"""The core: the hardware of a program, and nothing else.

Nodes (router, operators, readers, memories), the links between them, and one sequencer are built
from the fields of a program. The core knows no host, bus, packet, image or board: adapters stand on
its ports.

Modules, from the program to the netlist:

- `rows`: the fields of all forms, one after another.
- `kinds`: which nodes do the same, and the variants that each may carry out.
- `places`: where a bit of a value lies: a constant, a column of the sequencer, a table at the node.
- `part`: the base class of the modules of a node.
- `router`, `operators`, `store`: the three modules of a node, and how each is planned.
- `slots`, `sequencer`: the one controller that steps all nodes through the program.
- `core`: the netlist of everything.
"""

from .core import Core

__all__ = ["Core"]
