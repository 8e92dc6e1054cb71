"""The bare core, the adapter of the top ``core``: each node has ports, driven by the user's design.

A node of a core with memories has one memory port. A core without memories is a *direct* core. A
node of a direct core has one input for words that it sends (to *inject* them into the network), and
one output for received words. Both are valid in cycles that the schedule fixes.

Modules, in reading order:

- `front`: the ports around a core.
- `memory_port`: the port to the memories of a node.
- `direct`: the outputs that tell all nodes of a direct core which flit to inject.
- `interface`: declarations for manifest, files, test bench and proof.
- `claims`: the proof of whole runs through the ports.
"""
