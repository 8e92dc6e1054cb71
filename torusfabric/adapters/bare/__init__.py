"""The bare core: every node has ports of its own, which a design around it drives.

Modules:

- `memory_port`: the port to the memories of a node.
- `direct`: the flit that nodes send and the count of words that arrive, in a core without memories.
- `hardware`: the ports around a core.
- `interface`: what manifest, files and bench are told.
"""
