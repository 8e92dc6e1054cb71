"""The core: the hardware that executes a program.

A core consists of nodes (each a router, operators, readers and memories), the links between them,
and one sequencer. All of it is built from the fields of the program. The core knows no host, bus,
packet, image or board. Adapters use its ports: the run port, the memory ports and the link ports.

Modules, in the order from the program to the netlist:

- `rows`: the values of all control points, and the kinds of nodes (nodes with equal values).
- `places`: the place of each bit of a value: a constant, a column that the sequencer sends, or a
  table at the node.
- `families`: the kinds of nodes that share a module, and the words at the inputs of each module.
- `node_module`: the base class of the modules of a node, with their multiplexers.
- `router`: the multiplexers of out-ports and operators, and the two modules that contain them.
- `store_shape`, `store_plan`, `store`: the memories of a node, their plan, and the module that
  contains them.
- `memory_port`, `direct_port`, `run_port`: the ports that adapters use.
- `slots`, `sequencer`: the controller that steps all nodes through the program.
- `split`: the rows of a core whose memory port writes during runs. A memory that both the port and
  a run would write becomes two memories.
- `room`, `room_sequencer`: the core with writable tables.
- `core`: the netlist of all parts.
"""

from .core import Core

__all__ = ["Core"]
