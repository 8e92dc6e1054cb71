"""Streams: two engines a node that move packets into a core, and out of it.

Message m is loaded into section ``m mod S`` of the memories while run m - 1 goes on, and unloaded
while run m + 1 does. A node is ready if a message waits and fewer runs are claimed than it has
buffers; a run is claimed from its begin until its last word has left memory. So nothing is
overwritten, and the core itself never waits.

Modules:

- `packets`: where the words of packets lie, as arrays over nodes, packets and blocks.
- `table`: the packet table of a node, and which of its bits need a ROM.
- `engine`, `loader`, `unloader`: the engines.
- `own_block`: words that a node sends to itself.
- `control`: starts runs through the run port.
- `hardware`: the netlist.
"""
