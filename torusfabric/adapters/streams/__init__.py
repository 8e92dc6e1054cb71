"""Streams: two engines a node that move packets into a core, and out of it.

Message m is loaded into section ``m mod S`` of the memories while run m - 1 goes on, and unloaded
while run m + 1 does. A node is ready if a message waits and fewer runs are claimed than it has
buffers; a run is claimed from its begin until its last word has left memory. So nothing is
overwritten, and the core itself never waits.

Modules:

- `packets`: where the words of packets lie, as arrays over nodes, packets and blocks.
- `table`: the packet table of a node, and which of its bits need a ROM.
- `engine`, `loader`, `unloader`: the engines; `words` counts for both, `own_block` has the words
  that a node sends to itself.
- `sections`: how many messages a node holds on each side, and the least beat.
- `commands`: the choices for each run, and what became of it; `run_facts` is what nodes know of it.
- `readiness`: the tree that tells when every node is ready, and the watch for nodes that are not.
- `control`: starts runs through the run port.
- `crossings`: queues between the clocks of nodes and that of the fabric.
- `ports`, `members`: the ports of a fabric, and its members in Amaranth.
- `run_port`: starts in place of commands, for a bus.
- `hardware`: the netlist; `interface`, `options`: what other rooms ask of the folder.
- `drive`, `claims`, `bench`: simulation, proof, and the emitted bench.
"""
