"""What is read from the text as gates."""

import torusfabric as tf
from torusfabric.proof.gates import read_gates


def test_products_of_addresses_become_gates():
    # A node number times 11 flits: a product that Yosys first turns into adders.
    fabric = tf.Fabric(tf.compile(tf.plan("7", "allgather"), flits=11), width=2)
    leaves = [fabric.prefix + name for name in fabric.netlist.modules]
    host = read_gates(tf.emit(fabric), leaves).modules["host"]
    assert {gate.kind for gate in host.gates} <= {"AND", "OR", "XOR", "NOT", "MUX"}
