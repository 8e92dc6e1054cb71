"""The stream adapter, the top ``stream``: each node sends and receives packets by AXI4-Stream.

Each node has two *engines*, which are modules of this package, not the engine of the glossary. The
*loader* takes packets from the user and writes them into the memories of the node. The *unloader*
reads received words and sends them as packets to the user. Messages and runs are numbered; run m
moves message m of every node. Each memory is divided into S equal *sections*. Message m, and the
words that run m receives, lie in section ``m mod S``. So loading, running and unloading overlap:

=============  ==================  ==================  ==================
section, of 2  while run 1 goes    while run 2 goes    while run 3 goes
=============  ==================  ==================  ==================
0              load 2, unload 0    run 2               load 4, unload 2
1              run 1               load 3, unload 1    run 3
=============  ==================  ==================  ==================

The *control* starts a run when every node is ready. A node is ready if it holds a complete message,
and has a free *buffer*: space for the received words of one more run (two or three in all, see
`sections`). A run *claims* a buffer of a node from its begin until its last received word has left
the memory. So no word is overwritten, and a run never waits once it has begun.

If runs choose more than the length of messages, the fabric has a stream of *commands*, one for each
run, and a stream of *statuses*, which report the end of each run.

=========== ==================================================================================
packets     locations of the words of packets, as arrays over nodes, packets and blocks
table       the packet table of a node: locations as hardware, with a ROM where needed
sections    number of sections, and the smallest beat that does not limit the runs
words       counters of the words of a packet, for both engines
engine      base class of both engines, and their parameters
loader      the engine that takes packets, and writes them into memories
unloader    the engine that reads memories, and sends packets
own_block   memory for the *own block*, the words that a node sends to itself
readiness   tree that combines the readiness of all nodes; watch that names late nodes
control     module that starts runs by the run port, the signals of the core that start a run
commands    module that takes the choices for each run, and reports the result of each run
run_facts   widths of these choices at the nodes
crossings   queues between the clocks of nodes and the clock of the fabric
hardware    all modules, assembled to a netlist
front       the class that builds a fabric with the top ``stream``, without a bus
ports       the ports of a fabric with streams
run_port    a run port in place of the streams of commands and statuses
members     the streams as members of an Amaranth component
interface   declarations for manifest, files, test bench, simulation and proof
options     command-line options
drive       simulation: packets in, expected packets out, rates
bench       the emitted test bench
claims      proof: engines, control, tables, and whole runs
=========== ==================================================================================
"""
