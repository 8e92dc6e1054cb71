"""The host port: one memory-mapped port for all nodes.

Modules:

- `port`: the port, and the tree that brings the word of a node back.
- `finders`: the memory and the address of each word; `division` divides addresses.
- `requests`: refuses impossible runs with an error number, and starts the others.
- `hardware`: the port in front of a core.
- `interface`: what manifest, bench and proof are told.
- `claims`: claims about the port, and whole runs through it.
"""
