"""Gates that the prover reads from emitted Verilog."""

from dataclasses import replace

import torusfabric as tf
from torusfabric.proof.gates import read_gates
from torusfabric.proof.wiring import check_words
from torusfabric.rtl.netlist import Role


def test_products_of_addresses_become_gates():
    # A node number times 11 flits: a product that Yosys first turns into adders.
    fabric = tf.Fabric(tf.compile(tf.plan("7", "allgather"), flits=11), width=2)
    host = read_gates(tf.emit(fabric), fabric.netlist.roles).modules["host"]
    assert {gate.kind for gate in host.gates} <= {"AND", "OR", "XOR", "NOT", "MUX"}


def test_instances_that_nothing_needs_are_not_missed():
    """Words are checked alike without the instances that Yosys removes as unused."""
    fabric = tf.Fabric(tf.compile(tf.plan("2x3", "alltoall")), width=2)
    text = read_gates(tf.emit(fabric), fabric.netlist.roles)
    merges = {instance.name for instance in fabric.netlist.instances_with_role(Role.READ_TREE)}
    assert merges
    others = {name: each for name, each in text.instances.items() if name not in merges}
    assert check_words(replace(text, instances=others), 2) == check_words(text, 2)
