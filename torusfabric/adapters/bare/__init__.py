"""The bare core: every node has ports of its own, which a design around it drives.

Modules:

- `memory_port`: the port to the memories of a node.
- `hardware`: the ports around a core.
"""
