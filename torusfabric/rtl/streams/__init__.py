"""Fabrics whose nodes have streams: one of what a node sends, and one of what it receives.

How the parts fit:

- `ports` says which ports such a fabric has, from the program and the width alone, and which
  streams of Amaranth; the netlist, the manifest and benches agree on them.
- `packets` says where the words of packets lie in memories, from the address maps of the program;
  `plan` makes of it the shapes of the modules, and what the ROMs of nodes hold.
- Every node has a `loader`, which writes what the node sends; an `endpoint`, whose memories have a
  section that the run under way uses and others for the loader and the unloader; and an `unloader`,
  which reads what the node has received, run by run. Both count and are reset with what is in
  `words`; `shapes` says what all of them share, and `sections` how many messages a node holds on
  each side, and how many flits a word has.
- `commands` takes what is chosen for each run, if anything but the length is, and reports what
  became of it; the `RunFacts` of `shapes` are what nodes are given of it.
- `control` has a tree that tells when every message is there and every node has room; then it
  starts the sequencer, or drops messages that are no good.
- `nodes` puts all of that into the netlist, and `crossings` the queues between the clocks of nodes
  and that of the fabric, where nodes have clocks of their own.

Message m is loaded while run m - 1 goes on, and unloaded while run m + 1 does. Runs are numbered in
every node by the pulses `run_begins` and `run_ends` alone; the lowest bits of the number are the
section of the memories. What a node gets from itself is still unloaded when the message after the
next is loaded, and so is kept apart in twice as many sections. A node is ready when a message waits
and fewer runs are claimed than it has buffers, which they are from their begin until the last word
has left memory; so nothing is overwritten, and the fabric itself never waits.
"""

from .ports import Clocks, needs_commands, stream_ports

__all__ = ["Clocks", "needs_commands", "stream_ports"]
