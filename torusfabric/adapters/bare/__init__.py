"""The bare core, the adapter of the top ``core``: each node has ports, driven by the user's design.

A node has a port to its memories. In a core without memories (a *direct* core) it has a port for
injected and one for received words, which are valid in fixed cycles of the schedule.

Modules, in reading order:

- `front`: the ports around a core.
- `memory_port`: the port to the memories of a node.
- `direct`: the outputs that tell all nodes of a direct core which flit to inject.
- `interface`: declarations for manifest, files, test bench and proof.
- `claims`: the proof of whole runs through the ports.
"""
