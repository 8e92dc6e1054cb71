"""Declarations that the core and its adapters exchange: values and base classes, no hardware.

- `adapter`, `options`: the protocol between commands and adapters, and the options of commands.
- `interface`, `ports`, `registers`: the outermost ports of a fabric, and the registers of a bus.
- `assertions`, `claims`: properties of the ports, and statements that the prover proves.
- `traffic`: the interface of simulated streams.
- `node_block`: some nodes of a network, for a fabric that holds only these.
"""
