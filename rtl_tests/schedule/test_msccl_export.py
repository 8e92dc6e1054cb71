"""Export to MSCCL and CSV, and import of MSCCL files with random changes."""

import csv
import random
from itertools import pairwise
from random import Random
from xml.etree import ElementTree

import msccl_generators as generators
import msccl_machine
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.algorithms import CATALOGUE, Options
from torusfabric.collective import COLLECTIVES, parse_collective
from torusfabric.schedule.held_blocks import HeldBlocks
from torusfabric.schedule.recognise import recognise
from torusfabric.topology import parse_topology

#: Collectives that MSCCL knows.
KINDS = [kind for kind, definition in COLLECTIVES.items() if not definition.local]
QUICK = ("5", "2x3", "3x3", "arrowhead:1")
#: Store-and-forward algorithms of collectives whose first algorithm uses circuits.
STORING = {"broadcast": "necklace", "reduce": "necklace"}

LONG = ("2", "4x4", "2x2x2", "3x3x3", "arrowhead:2")


def selections():
    """Yield every algorithm of the catalogue, on each topology and collective that it plans."""
    for name in QUICK + LONG:
        topology = parse_topology(name)
        for kind in KINDS:
            collective = parse_collective(kind)
            if collective.rooted:
                collective = parse_collective(kind, root=topology.nodes - 1)
            for algorithm in CATALOGUE:
                if algorithm.why_not(topology, collective, Options()) is None:
                    case = f"{name} {kind} {algorithm.name}"
                    marks = [pytest.mark.long] * (name in LONG)
                    yield pytest.param(topology, collective, algorithm, id=case, marks=marks)


def content(schedule):
    """Return the blocks on each link in each step."""
    state = HeldBlocks(schedule.topology, schedule.blocks)
    steps = []
    for transfers in schedule.rounds():
        carried = state.execute(transfers)
        cuts = pairwise(carried.listed.indptr.tolist())
        lists = [tuple(sorted(carried.listed.ids[a:b].tolist())) for a, b in cuts]
        hops = carried.hops[:, 0].tolist()
        steps.append(sorted(zip(carried.source.tolist(), hops, lists, strict=True)))
    return steps


def check_file(path):
    """Run a file in random orders; check that each GPU ends with its results."""
    algo = ElementTree.parse(path).getroot()
    for seed in range(3):
        memory = msccl_machine.run_file(path, random.Random(seed))
        for rank, held in enumerate(memory):
            for location, value in msccl_machine.results(algo, rank):
                assert held[location] == value, (rank, location)


@pytest.mark.parametrize(("topology", "collective", "algorithm"), few(33, [*selections()]))
def test_export(tmp_path, topology, collective, algorithm):
    """An exported file computes its collective, and is read as the same schedule. Circuits and ring
    exchanges are refused.
    """
    schedule = recognise(algorithm(topology, collective, Options()))
    path = tmp_path / "plan.xml"
    if schedule.switching == "circuit":
        with pytest.raises(tf.InputError, match=r"Format .* takes store-and-forward schedules"):
            tf.export_schedule(schedule, path)
        assert not path.exists()
        return
    if schedule.algorithm == "ring-exchange":
        with pytest.raises(tf.InputError, match="takes schedules that move partial sums"):
            tf.export_schedule(schedule, path)
        assert not path.exists()
        return
    tf.export_schedule(schedule, path)
    check_file(path)
    types = {step.get("type") for step in ElementTree.parse(path).iter("step")}
    copies = {"cpy"} if collective.kind == "alltoall" else set()
    assert types <= {"s", "r", "rrc", "nop"} | copies
    found = tf.import_schedule(path)
    tf.check(found)
    assert content(found) == content(schedule)
    assert found.form == schedule.form
    if schedule.form != "rounds":
        assert found.digest == schedule.digest


def test_offsets_are_equal(tmp_path):
    """A chunk has the same offset at sender and receiver, except in an all-to-all."""
    for kind in sorted({*KINDS} - {"alltoall"}):
        tf.export_schedule(tf.plan("3x3", kind, algorithm=STORING.get(kind)), tmp_path / "plan.xml")
        for step in ElementTree.parse(tmp_path / "plan.xml").iter("step"):
            assert step.get("srcoff") == step.get("dstoff")


def test_every_attribute_is_there(tmp_path):
    """Every attribute is written, because some tools demand attributes that others omit."""
    tf.export_schedule(tf.plan("2x4", "allreduce"), tmp_path / "plan.xml")
    algo = ElementTree.parse(tmp_path / "plan.xml").getroot()
    names = "name proto nchannels nchunksperloop ngpus coll inplace outofplace minBytes maxBytes"
    assert {*names.split(), "redop"} <= set(algo.attrib)
    assert all({"id", "i_chunks", "o_chunks", "s_chunks"} == set(gpu.attrib) for gpu in algo)
    step_names = {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps"}
    for block in algo.iter("tb"):
        assert {"id", "send", "recv", "chan"} == set(block.attrib)
        assert all(step_names | {"hasdep"} <= set(step.attrib) for step in block)
        assert [step.get("s") for step in block] == list(map(str, range(len(block))))
    awaited = {
        (gpu.get("id"), step.get("depid"), step.get("deps"))
        for gpu in algo
        for step in gpu.iter("step")
    }
    for gpu in algo:
        for block in gpu:
            for step in block:
                is_awaited = (gpu.get("id"), block.get("id"), step.get("s")) in awaited
                assert step.get("hasdep") == str(int(is_awaited))


def test_groups_are_refused(tmp_path):
    """Collectives in groups are refused, because MSCCL knows collectives of all GPUs only. An
    unknown format is refused.
    """
    with pytest.raises(tf.InputError, match="takes collectives of all nodes together, not allg"):
        tf.export_schedule(tf.plan("3x3", "allgather@1"), tmp_path / "plan.xml")
    with pytest.raises(tf.InputError, match=r"Format must be .*, not 'mscl'.*did you mean msccl"):
        tf.export_schedule(tf.plan("3x3", "allgather"), tmp_path / "plan.xml", "mscl")


@pytest.mark.parametrize("kind", ["allgather", "alltoall", "reduce-scatter", "allgather@1"])
def test_csv(tmp_path, kind):
    """The CSV file has a row for each block on a link."""
    schedule = tf.plan("3x3", kind)
    tf.export_schedule(schedule, tmp_path / "plan.csv", "csv")
    rows = list(csv.DictReader((tmp_path / "plan.csv").read_text().splitlines()))
    assert list(rows[0]) == ["step", "source", "port", "destination", "block"]
    blocks, topology = schedule.blocks, schedule.topology
    found: list[dict[tuple[int, int], list[int]]] = [{} for _ in range(schedule.steps)]
    for row in rows:
        source, port = int(row["source"]), topology.port(row["port"])
        assert topology.neighbours[source, port] == int(row["destination"])
        block = blocks.parse_entry([int(part) for part in row["block"].split(":")])
        found[int(row["step"]) - 1].setdefault((source, port), []).append(block)
    listed = [sorted((*arc, tuple(sorted(ids))) for arc, ids in step.items()) for step in found]
    assert listed == content(schedule)


@pytest.mark.parametrize("kind", ["exchange", "halo"])
def test_messages_with_offsets_are_refused(kind, tmp_path):
    with pytest.raises(tf.InputError, match=f"msccl does not know {kind}"):
        tf.export_schedule(tf.plan("3x3", kind), tmp_path / "plan.xml")


#: Files, and a topology for each.
FILES = [
    (generators.ring_allgather(4), "4"),
    (generators.ring_allreduce(3), "3"),
    (generators.recursive_doubling_allgather(4), "4"),
    (generators.halving_doubling_allreduce(4), "2x2"),
    (generators.hierarchical_allgather(2, 3), "2x3"),
    (generators.all_pairs_alltoall(3), "3"),
]

#: New values for changed attributes.
VALUES = ["-1", "0", "1", "2", "7", "999999999", "x", "", "o", "i", "s", "r", "rrc", "rcs", "rrs",
          "rrcs", "cpy", "re", "nop", "alltoall", "reduce_scatter", "broadcast",
          "gather"]  # fmt: skip


def mutated(text, random):
    """Return a file with one to three random changes."""
    root = ElementTree.fromstring(text)
    for _ in range(random.choice([1, 1, 2, 3])):
        element = random.choice([*root.iter()])
        parent = random.choice([found for found in root.iter() if len(found)] or [root])
        name = random.choice([*element.attrib] or ["name"])
        match random.choice("aaaaaadrc"):
            case "a":
                element.set(name, random.choice(VALUES))
            case "d":
                element.attrib.pop(name, None)
            case "r" if len(parent):
                parent.remove(random.choice([*parent]))
            case "c" if len(parent):
                copied = ElementTree.tostring(random.choice([*parent]))
                parent.append(ElementTree.fromstring(copied))
    return ElementTree.tostring(root, encoding="unicode")


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 100), pytest.param(1, 4000, marks=pytest.mark.long)]
)
def test_refused_or_right(tmp_path, seed, count):
    """A changed file is refused with one line, or its schedule passes the check."""
    random, path = Random(seed), tmp_path / "file.xml"
    messages, kept = [], 0
    for _ in range(count):
        text, topology = random.choice(FILES)
        path.write_text(mutated(text, random))
        try:
            schedule = tf.import_schedule(
                path,
                topology,
                placement="gray" if topology == "4" and "doubling" in text else "identity",
                switching=random.choice(["store-and-forward", "store-and-forward", "circuit"]),
            )
        except tf.InputError as error:
            messages.append(str(error))
        else:
            tf.check(schedule)
            kept += 1
    assert not any("\n" in message for message in messages)
    assert count / 20 < kept < count / 2


@pytest.mark.parametrize("content", [b"", b"\xff\xfe<", b"<algo>" * 5000, b"<a>" + b"x" * 99])
def test_what_is_no_file_of_this_kind(tmp_path, content):
    """Bytes that are no MSCCL file are refused with a message."""
    path = tmp_path / "file.xml"
    path.write_bytes(content)
    with pytest.raises(tf.InputError, match="MSCCL file"):
        tf.import_schedule(path, "4")
