"""A topology that the package does not have: any Cayley graph by moduli and generators."""

import re

import numpy as np

from torusfabric.topology import CayleyGraph

__all__ = ["AnyGraph"]


class AnyGraph(CayleyGraph):
    """A product of cyclic groups with a port for each generator.

    Parameters
    ----------
    moduli : tuple of int
        Orders of the cyclic groups.
    steps : tuple of tuple of int
        Coordinates of each generator.
    """

    kind = "any"
    notation = "any:MODULI:STEPS"
    entry = '{"kind": "any", "moduli": [..], "steps": [..]}'

    def __init__(self, moduli, steps):
        self.orders, self.offsets = tuple(moduli), tuple(map(tuple, steps))
        words = ["x".join(map(str, self.orders))]
        words += [",".join(map(str, offset)) for offset in self.offsets]
        self.name = f"any:{':'.join(words)}"
        self.nodes, self.ports = int(np.prod(self.orders)), len(self.offsets)
        self.port_names = tuple(f"p{port}" for port in range(self.ports))
        whole = [tuple(x % m for x, m in zip(offset, moduli, strict=True)) for offset in steps]
        back = [tuple(-x % m for x, m in zip(offset, moduli, strict=True)) for offset in steps]
        self.opposite = np.full(self.ports, -1)
        for port, offset in enumerate(back):
            if self.opposite[port] < 0:
                # The first free port that leads back; the port itself if there is no other.
                free = [p for p in range(self.ports) if whole[p] == offset and self.opposite[p] < 0]
                other = next((p for p in free if p != port), port)
                self.opposite[[port, other]] = other, port

    @classmethod
    def parse(cls, text):
        if not re.fullmatch(r"any(:[-\d,x]+)+", text):
            return None
        _, moduli, *steps = text.split(":")
        return cls(
            tuple(map(int, moduli.split("x"))), [tuple(map(int, s.split(","))) for s in steps]
        )

    @classmethod
    def from_json(cls, entry):
        return cls(tuple(entry["moduli"]), entry["steps"])

    def to_json(self):
        return {"kind": self.kind, "moduli": list(self.orders), "steps": list(self.offsets)}

    @property
    def moduli(self):
        return self.orders

    @property
    def generators(self):
        wrapped = [np.mod(offset, self.orders) for offset in self.offsets]
        return np.array([np.ravel_multi_index(tuple(offset), self.orders) for offset in wrapped])

    def coordinates(self, nodes):
        return np.stack(np.unravel_index(nodes, self.orders))

    def node_name(self, node):
        return f"<{node}>"
