"""The host port: one memory-mapped port for all nodes.

Modules:

- `requests`: refuses impossible runs with an error number, and starts the others.
- `hardware`: the port in front of a core.
- `interface`: what manifest and bench are told.
"""
