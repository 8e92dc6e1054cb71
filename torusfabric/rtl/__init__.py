"""The hardware of a program, as Amaranth modules in a netlist.

This package translates a program into hardware. It takes no decision about the schedule. Its
modules, in the order of reading:

- `modules`, `netlist`, `arrays`: the pieces that hardware is described with. A `Netlist` has
  instances of `Leaf` modules.
- `memories`, `multiplexer`, `operator_unit`, `links`, `flit_rows`: building blocks inside modules.
- `core`: the hardware that executes a program: nodes, links and the sequencer.
- `distribution`: the registers between the sequencer and the nodes.
- `fabric`, `front`, `run_choices`: the frame in which an adapter puts ports around a core.
- `assembly`: a netlist as an Amaranth design.
- `core_address_map`, `inventory`, `word_path`: reports about a fabric.
"""

from .fabric import Fabric

__all__ = ["Fabric"]
