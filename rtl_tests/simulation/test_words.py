"""Words that bypass the host port lie in memory where the port would put and find them."""

import numpy as np
import pytest
from fabrics import build_fabric
from helpers import few

import torusfabric as tf
from torusfabric.adapters.host.drive import words
from torusfabric.adapters.host.drive.words import RunWords
from torusfabric.simulation.engines import AmaranthEngine, CompiledEngine
from torusfabric.simulation.jobs import complete_job, default_jobs, random_jobs
from torusfabric.simulation.simulate import simulate
from torusfabric.toolchain import cxx

needs_compiler = pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")

#: Selections and compiler options: each form of address map, ragged messages, chunks, groups,
#: any root, several modes, memories of a single word, copies, and words that are cut in two.
CASES = [
    ("4x4", "allgather:matching", {"flits": 1}, 8),
    ("3x4", "scatter", {"flits": 5}, 8),
    ("3x3", "reduce-scatter", {"flits": 4}, 16),
    ("arrowhead:1", "broadcast:wormhole-forest", {"flits": 7}, 8),
    ("3x3", "gather", {"max_flits": 3, "root": "any"}, 16),
    ("3", "allgather", {"flits": 2}, 1021),
]

#: Cases that take longer.
MORE = [
    ("2x3", "allgather,alltoall,allreduce,scatter", {"max_flits": 4, "root": "any"}, 16),
    ("4x5", "allgather:hamiltonian", {"flits": 3}, 33),
    ("4x4", "alltoall", {"flits": 2}, 65),
    ("5x5", "gather:lee-code", {"flits": 2}, 16),
    ("4x4", "reduce:max-flow", {"flits": 3}, 16),
    ("4x4", "allreduce@1", {"flits": 3}, 16),
    ("3x3", "broadcast", {"max_flits": 5, "root": "any"}, 16),
    ("3x3", "allgather,alltoall,allreduce,scatter", {"max_flits": 4, "root": "any"}, 16),
]


def jobs_of(fabric):
    """Some runs of a fabric, of every mode and operator."""
    jobs = [*default_jobs(fabric.program)[:2]]
    if fabric.program.any_length:
        jobs += random_jobs(fabric, 4, seed=1)
    return [complete_job(fabric, job) for job in jobs]


def check_both_ways(case, engine, monkeypatch, **settings):
    """Check that runs through the port and around it have the same words and cycles."""
    topology, collectives, compiled, width = case
    fabric = build_fabric(topology, collectives, width=width, **compiled)
    jobs = jobs_of(fabric)
    monkeypatch.setattr(words, "PORT_SAMPLE_WORDS", 5)
    every = simulate(fabric, jobs=jobs, engine=engine(fabric, through_port=True, **settings))
    assert every.passed, every.first_wrong
    assert every.direct_words == 0
    direct = simulate(fabric, jobs=jobs, engine=engine(fabric, **settings))
    assert direct.passed, direct.first_wrong
    # Words that are cut in two are not reachable in memory.
    assert direct.direct_words > direct.port_words or fabric.width == 1021
    assert every.port_words >= direct.direct_words
    assert every.jobs == direct.jobs


@pytest.mark.parametrize(
    "case",
    few(3, [*CASES, *(pytest.param(case, marks=pytest.mark.long) for case in MORE)], tuples=True),
    ids=lambda case: f"{case[0]}-{case[1]}",
)
def test_memories_are_what_the_port_shows(case, monkeypatch):
    """Words in the memories of Amaranth's simulator are those that the port shows."""
    check_both_ways(case, AmaranthEngine, monkeypatch)


@needs_compiler
@pytest.mark.parametrize(
    "case",
    [
        CASES[0],
        *(pytest.param(case, marks=pytest.mark.long) for case in CASES[1:] + MORE),
        ("3x3", "allgather,allreduce", {"max_flits": 3}, 33),
    ],
    ids=lambda case: f"{case[0]}-{case[1]}",
)
def test_compiled_memories_are_what_the_port_shows(case, monkeypatch):
    """Words in the memories of the compiled engine are those that the port shows."""
    check_both_ways(case, CompiledEngine, monkeypatch)


@pytest.mark.parametrize("place", ["send_base", "recv_base"])
def test_wrong_address_at_the_port_is_found(place, monkeypatch):
    """A sample of words through the port reveals a wrong address."""
    monkeypatch.setattr(words, "PORT_SAMPLE_WORDS", 50)
    fabric = tf.Fabric(tf.compile(tf.plan("3x3", "alltoall"), flits=2), width=16)
    monkeypatch.setattr(fabric.layouts[0], place, getattr(fabric.layout, place) ^ 1)
    report = tf.simulate(fabric)
    assert 0 < report.words_wrong <= 110
    assert report.direct_words > 200


def test_wrong_place_in_memory_is_found(monkeypatch):
    """Words that are taken from a wrong address in memory are wrong."""
    monkeypatch.setattr(words, "PORT_SAMPLE_WORDS", 5)
    addresses = words.word_addresses

    def moved(program, *, received, **choices):
        memory, address = addresses(program, received=received, **choices)
        return memory, np.where(received & (memory == 0) & (address >= 0), address ^ 1, address)

    monkeypatch.setattr(words, "word_addresses", moved)
    fabric = tf.Fabric(tf.compile(tf.plan("3x3", "allgather"), flits=2), width=16)
    assert tf.simulate(fabric).words_wrong > 9


def test_corners_and_a_sample_go_through_the_port():
    """The port reads a random sample, and the first and last words of two corner nodes."""
    fabric = tf.Fabric(tf.compile(tf.plan("6x6", "allgather"), flits=2), width=8)
    run = RunWords(fabric, np.zeros((36, 2), np.uint64), tf.Job())
    found = next(run.read_accesses(cells=object()))
    pairs = {*zip(found.nodes.tolist(), found.word[:, 0].tolist(), strict=True)}
    assert words.PORT_SAMPLE_WORDS <= len(pairs) == found.n_accesses <= words.PORT_SAMPLE_WORDS + 4
    assert {(0, 0), (0, 71), (35, 0), (35, 71)} <= pairs
    assert len({*found.nodes.tolist()}) == 36
