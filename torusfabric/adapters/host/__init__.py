"""The host port: one memory-mapped port for all nodes, the adapter of the top ``host``.

A host writes the message of each node, starts a run, and reads the received words of each node.
The bus adapter (`torusfabric.adapters.bus`) puts this port behind a bus.

Modules, in reading order:

- `front`: the host port in front of a core.
- `requests`: checks the inputs of a start, and refuses an invalid run with an error number.
- `finders`: translation of a host address into memory and address at a node.
- `port`: the pipelines of writes and reads, and the tree that returns the read word.
- `interface`: the declarations of the port for manifest, test bench and proof.
- `drive`: runs through the port in a simulation.
- `claims`: the proof of the port, and of whole runs through it.
"""
