"""Refused host writes: past the words of a mode, together with a start, and during a run."""

import numpy as np
import pytest
from fabrics import build_fabric
from helpers import few
from vectors import needs_icarus, run_vectors

import torusfabric as tf

pytestmark = needs_icarus

#: Topology, collectives, options of the compiler, and the beat of the port.
FABRICS = [
    ("3", "reduce-scatter,gather", {"max_flits": 3}, 1),
    ("3", "alltoall,broadcast", {"max_flits": 4, "root": "any"}, 4),
    ("3", "allgather", {"flits": 2}, 1),
    ("2x2", "alltoall", {"flits": 3}, 1),
    ("2x3", "allreduce,alltoall,broadcast", {"max_flits": 3}, 1),
    ("3x3", "alltoall,broadcast", {"max_flits": 4, "root": "any"}, 4),
    ("mesh:2x3", "scatter,allgather", {"max_flits": 2}, 2),
    ("2x3", "alltoall@0,alltoall@1,allgather", {"max_flits": 2}, 1),
    ("5", "scatter", {"max_flits": 5}, 1),
]

WIDTH = 8


class Port:
    """A host port simulated by Icarus, as the list of its inputs in each cycle."""

    def __init__(self, fabric):
        self.fabric, self.steps = fabric, [{"rst": 1}] * 17 + [{}] * 3
        self.beat = fabric.beat

    def write(self, node, address, word):
        self.steps.append(
            {"host_we": 1, "host_node": node, "host_addr": address, "host_wdata": word}
        )

    def write_message(self, mode, messages):
        """Write the messages of all nodes, an array (nodes, words)."""
        parts = self.fabric.layouts[mode].send_parts
        for node, words in enumerate(self.packed(messages, parts)):
            for address, word in enumerate(words):
                self.write(node, address, word)

    def packed(self, words, parts):
        """Pack flits into words of the port, part by part."""
        flits, beat = words.shape[1] // parts, self.beat
        padded = np.zeros((len(words), parts, -(-flits // beat) * beat), object)
        padded[..., :flits] = words.reshape(len(words), parts, flits)
        grouped = padded.reshape(len(words), -1, beat)
        return sum(grouped[..., k] << WIDTH * k for k in range(beat)).tolist()

    def start(self, mode, **also):
        """Start a run of the longest messages; `also` has further inputs for that cycle."""
        program = self.fabric.program
        chosen = {"length": program.flits} if program.any_length else {}
        if len(program.modes) > 1:
            chosen["mode"] = mode
        self.steps.append({"start": 1, **chosen, **also})

    def read(self, mode):
        """Read all received words of a mode; return the arguments for `check`."""
        first, layout = len(self.steps), self.fabric.layouts[mode]
        for node in range(self.fabric.nodes):
            for address in range(layout.recv_words):
                self.steps.append(
                    {"host_node": node, "host_addr": self.fabric.layout.recv_base + address}
                )
        self.steps += [{}] * self.fabric.read_latency
        return first, mode

    def run(self, tmp_path):
        tf.emit(self.fabric).write(tmp_path / "out")
        self.shown = run_vectors(tmp_path / "out", tmp_path / "work", self.steps)

    def check(self, asked, messages):
        """Check that the words read are those of a run with the given messages."""
        (first, mode), fabric = asked, self.fabric
        length = {"length": fabric.program.flits} if fabric.program.any_length else {}
        expected, receives = fabric.program.delivered(messages, mode=mode, width=WIDTH, **length)
        parts = fabric.layouts[mode].recv_parts
        words = np.array(self.packed(expected.astype(object), parts))
        known = np.array(self.packed(receives * (2**WIDTH - 1), parts))
        shown = [each["host_rdata"] for each in self.shown[first + fabric.read_latency - 1 :]]
        found = np.array(shown[: words.size], object).reshape(words.shape)
        asked_for = zip(words.ravel(), found.ravel(), known.ravel(), strict=True)
        different = [w & k != (-1 if f is None else f) & k for w, f, k in asked_for]
        assert not any(different), np.flatnonzero(different)[:5]


def messages_of(fabric, mode, seed):
    layout = fabric.layouts[mode]
    count = layout.send_parts * fabric.program.flits
    shape = fabric.nodes, count
    return np.random.default_rng(seed).integers(0, 2**WIDTH, shape).astype(np.uint64)


@pytest.mark.parametrize(("topology", "collectives", "options", "beat"), few(3, FABRICS))
def test_a_write_past_the_words_of_a_mode_leaves_its_messages(
    topology, collectives, options, beat, tmp_path
):
    """A mode's messages stay when all higher addresses are written, even those of other modes and
    of received words.
    """
    fabric = build_fabric(topology, collectives, beat=beat, **options)
    port, asked = Port(fabric), []
    for mode, layout in enumerate(fabric.layouts):
        messages = messages_of(fabric, mode, mode)
        port.write_message(mode, messages)
        for node in range(fabric.nodes):
            for address in range(layout.send_words, 2 * layout.recv_base):
                port.write(node, address, -1)
        port.start(mode)
        port.steps += [{}] * (fabric.cycles_of(mode=mode) + fabric.hold + 1)
        asked.append((port.read(mode), messages))
    port.run(tmp_path)
    for where, messages in asked:
        port.check(where, messages)


@pytest.mark.parametrize(("topology", "collectives", "options", "beat"), few(3, FABRICS))
def test_a_write_with_a_start_or_in_a_run_changes_nothing(
    topology, collectives, options, beat, tmp_path
):
    """Writes during a start or a run change no memory, as a second run shows."""
    fabric = build_fabric(topology, collectives, beat=beat, **options)
    port, asked, rng = Port(fabric), [], np.random.default_rng(7)
    for mode, layout in enumerate(fabric.layouts):
        messages = messages_of(fabric, mode, mode)
        port.write_message(mode, messages)
        for writes in (True, False):
            also = {"host_we": 1, "host_wdata": -1} if writes else {}
            port.start(mode, **also, host_node=int(rng.integers(fabric.nodes)))
            # From the edge after the start to the edge after which `done` is high.
            for _ in range(fabric.cycles_of(mode=mode) + fabric.hold * writes):
                where = {"host_node": int(rng.integers(fabric.nodes)),
                         "host_addr": int(rng.integers(layout.send_words))}  # fmt: skip
                port.steps.append(also | where if writes else {})
            asked.append((port.read(mode), messages))
    port.run(tmp_path)
    for where, messages in asked:
        port.check(where, messages)


@pytest.mark.parametrize(("topology", "collectives", "options", "beat"), few(2, FABRICS))
def test_words_that_are_written_right_after_a_run_are_those_of_the_next(
    topology, collectives, options, beat, tmp_path
):
    fabric = build_fabric(topology, collectives, beat=beat, **options)
    mode = len(fabric.layouts) - 1
    port = Port(fabric)
    for seed in range(2):
        messages = messages_of(fabric, mode, seed)
        port.write_message(mode, messages)
        port.start(mode)
        port.steps += [{}] * (fabric.cycles_of(mode=mode) + fabric.hold)
    asked = port.read(mode)
    port.run(tmp_path)
    port.check(asked, messages)


def test_a_write_past_the_words_of_loaded_tables_changes_nothing(tmp_path):
    fabric = build_fabric("3", "alltoall,allgather", max_flits=3, tables="ram")
    port, messages = Port(fabric), messages_of(fabric, 1, 1)
    port.write_message(1, messages)
    for node in range(fabric.nodes):
        for address in range(9, 2 * fabric.layout.recv_base):
            port.write(node, address, -1)
    port.start(1)
    port.steps += [{}] * (fabric.cycles_of(mode=1) + 1)
    asked = port.read(1)
    port.run(tmp_path)
    port.check(asked, messages)
