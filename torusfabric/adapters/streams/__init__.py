"""Streams: two engines a node that move packets into a core, and out of it.

Message m is loaded into section ``m mod S`` of the memories while run m - 1 goes on, and unloaded
while run m + 1 does. A node is ready if a message waits and fewer runs are claimed than it has
buffers; a run is claimed from its begin until its last word has left memory. So nothing is
overwritten, and the core itself never waits.

=========== ========================================================================
packets     the places of the words of packets, as arrays over nodes, packets, blocks
table       the packet table of a node, and those of its bits that need a ROM
engine      the base class of both engines, and their parameters
loader      the engine that takes packets and writes them into memories
unloader    the engine that reads memories and sends packets
words       counters of both engines
own_block   words that a node sends to itself
sections    how many messages a node holds on each side, and the least beat
commands    the choices for each run, and what became of it
run_facts   the choices for runs, as nodes are given them
readiness   the tree that tells when all nodes are ready; the watch that names late ones
control     starts runs through the run port of the core
crossings   queues between the clocks of nodes and that of the fabric
hardware    the netlist
ports       the ports of a fabric with streams
run_port    a run port in place of streams of commands and statuses
members     the streams as members of a component of Amaranth
interface   the declarations for manifest, files, bench, simulation and proof
options     the options of commands
drive       simulation: words in, expected words out, rates
bench       the emitted bench
claims      proof: engines, control, tables, and whole runs
=========== ========================================================================
"""
