"""Import of MSCCL XML: every fault is named with its GPU, thread block and step."""

import time
from xml.etree import ElementTree

import msccl_generators as generators
import pytest

import torusfabric as tf
from torusfabric.schedule import SumTable
from torusfabric.schedule.foreign.dataflow import read_dataflow

#: Valid files. A broken file is one of these with a change.
RING = generators.ring_allgather(3)
SUMS = generators.ring_allreduce(3)
HALVES = generators.recursive_doubling_allgather(4)


def read(tmp_path, text):
    """Read the dataflow of a text."""
    path = tmp_path / "file.xml"
    path.write_text(text)
    return read_dataflow(path)


def changed(text, where, **attributes):
    """Return a file with other attributes for the element at a path; None drops an attribute."""
    root = ElementTree.fromstring(text)
    element = root.find(where)
    assert element is not None
    for name, value in attributes.items():
        element.attrib.pop(name, None)
        if value is not None:
            element.set(name, value)
    return ElementTree.tostring(root, encoding="unicode")


def without(text, where):
    """Return a file without the element at a path."""
    root = ElementTree.fromstring(text)
    parent, _, _ = where.rpartition("/")
    holder, element = root.find(parent), root.find(where)
    assert holder is not None
    assert element is not None
    holder.remove(element)
    return ElementTree.tostring(root, encoding="unicode")


def step(gpu, block, number):
    """The path of a step in the XML."""
    return f"gpu[@id='{gpu}']/tb[@id='{block}']/step[@s='{number}']"


#: Wrong attributes for the second step of rank 1, with the message of each.
ODD_STEPS = {
    "unknown type": (
        {"type": "x"},
        'Type of gpu 1, thread block 0, step 1 must be nop, s, .* or re, not "x"',
    ),
    "unknown buffer": (
        {"dstbuf": "q"},
        'Dstbuf of gpu 1, thread block 0, step 1 must be i, o or s, not "q"',
    ),
    "no chunks": (
        {"cnt": "0"},
        "Cnt of gpu 1, thread block 0, step 1 must be from 1 to .* not 0",
    ),
    "late": (
        {"round": "999999999"},
        "Round of gpu 1, thread block 0, step 1 must be below 262144, not 999999999",
    ),
    "step twice": (
        {"s": "0"},
        "Step must be there once, not gpu 1, thread block 0, step 0 twice",
    ),
    "dangling": (
        {"depid": "4", "deps": "2"},
        "gpu 1, thread block 0, step 1 must wait for a step that there is, not for thread block 4, "
        "step 2",
    ),
    "out of range": (
        {"dstoff": "3"},
        "Dstoff of gpu 1, thread block 0, step 1 must lie within the 3 chunks of buffer o, not be "
        "3 with cnt 1",
    ),
}

BROKEN = {
    "not XML": ("<algo", "Content must be XML: unclosed token"),
    "entities": (
        '<!DOCTYPE algo [<!ENTITY a "a">]><algo name="&a;"/>',
        "XML must have no document type and no entities, not DTD",
    ),
    "other content": ("<html/>", 'Outermost element must be algo, not "html"'),
    "no collective": (changed(RING, ".", coll=None), "must have the attribute coll"),
    "unknown collective": (changed(RING, ".", coll="custom"), "Collective must be .* not 'custom'"),
    "no number": (changed(RING, ".", ngpus="three"), 'must have a whole number .* not "three"'),
    "missing gpu": (without(RING, "./gpu[@id='1']"), "Gpus must be those from 0 to 2, not 0, 2"),
    "odd chunks": (changed(RING, ".", nchunksperloop="4"), "a multiple of the 3 gpus .* not 4"),
    "no such peer": (
        changed(RING, "gpu[@id='1']/tb", send="7"),
        "Peer send of gpu 1, thread block 0 must be -1 or another gpu from 0 to 2, not 7",
    ),
    "itself as peer": (
        changed(RING, "gpu[@id='1']/tb", send="1"),
        "Peer send of gpu 1, thread block 0 must be -1 or another gpu",
    ),
    "no peer": (
        changed(RING, "gpu[@id='1']/tb", send="-1"),
        "Type of gpu 1, thread block 0, step 0 must suit its .* no send peer, not be s",
    ),
    "thread block twice": (
        changed(HALVES, "gpu[@id='0']/tb[@id='1']", id="0"),
        "Gpu 0, thread block 0 must be there once, not twice",
    ),
    "peer twice": (
        changed(HALVES, "gpu[@id='0']/tb[@id='2']", send="1"),
        "Peer send of gpu 0, thread block 2 must be that of one thread block on channel 0, not of "
        "thread block 0 too",
    ),
    "unmatched send": (
        without(RING, step(2, 0, 2)),
        "gpu 1, thread block 0, step 1 must send what gpu 2 receives, but that receives nothing "
        "more from gpu 1 on channel 0",
    ),
    "unmatched receipt": (
        without(RING, step(2, 0, 0)),
        "gpu 0, thread block 0, step 2 must receive what gpu 2 sends, but that sends nothing more",
    ),
    "counts differ": (
        changed(RING, step(2, 0, 2), cnt="2"),
        "gpu 2, thread block 0, step 2 must receive the 1 chunks that gpu 1, thread block 0, "
        "step 1 sends, not 2",
    ),
    "deadlock": (
        changed(
            changed(HALVES, step(0, 0, 0), depid="1", deps="0"),
            step(1, 1, 0),
            depid="0",
            deps="0",
        ),
        "Steps must not wait for each other, as does gpu 0, thread block 0, step 0, which waits "
        "for gpu 0, thread block 1, step 0, which waits for gpu 1, thread block 1, step 0, which "
        "waits for gpu 1, thread block 0, step 0, which waits for the first: a deadlock",
    ),
    "never written": (
        changed(RING, step(1, 0, 0), srcoff="2"),
        r"gpu 1, thread block 0, step 0 must read what was written before, not o\[2\]",
    ),
    "block missing": (
        changed(RING, step(1, 0, 2), dstbuf="s"),
        r"Gpu 1 must end with chunk 0 of rank 2 in o\[2\], to which no step ever wrote",
    ),
    "wrong block": (
        changed(RING, step(1, 0, 2), dstoff="0"),
        r"Gpu 1 must end with chunk 0 of rank 0 in o\[0\], not chunk 0 of rank 2 \(from gpu 1, "
        "thread block 0, step 2",
    ),
    "sum twice": (
        changed(SUMS, step(1, 0, 1), type="rrs", srcoff="1", dstoff="1"),
        "gpu 1, thread block 0, step 1 must add up the same chunk, not chunk 0 and chunk 1",
    ),
    "sum without one": (
        changed(SUMS, step(1, 0, 1), type="rcs"),
        "without the contribution of gpu 1",
    ),
    "sum in a gather": (
        changed(RING, step(1, 0, 1), type="rrcs"),
        "gpu 1, thread block 0, step 1 must ",
    ),
    **{
        name: (changed(RING, step(1, 0, 1), **attributes), message)
        for name, (attributes, message) in ODD_STEPS.items()
    },
}


@pytest.mark.parametrize("name", BROKEN)
def test_faults_are_named(tmp_path, name):
    """The message is one line that names the file first, then location and fault."""
    text, message = BROKEN[name]
    with pytest.raises(tf.InputError, match=message) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"MSCCL file {tmp_path}/file.xml: ")
    assert "\n" not in str(error.value)


def test_what_only_some_tools_write_may_be_missing(tmp_path):
    """A file without the optional attributes is read as the same messages."""
    root = ElementTree.fromstring(RING)
    for name in root.attrib.keys() - {"nchunksperloop", "ngpus", "coll", "inplace"}:
        del root.attrib[name]
    for element in root.iter():
        for name in ("i_chunks", "o_chunks", "s_chunks", "chan", "depid", "deps", "hasdep", "cnt"):
            element.attrib.pop(name, None)
        if element.tag == "step":
            for side in ("srcbuf", "dstbuf"):
                assert element.get(side) == "o"
    found = read(tmp_path, ElementTree.tostring(root, encoding="unicode"))
    assert found.messages == read(tmp_path, RING).messages
    assert found.file.name == "msccl"


def test_each_pair_of_ranks_is_named_once(tmp_path):
    """Each pair of ranks is listed once, however many messages it exchanges."""
    found = read(tmp_path, RING)
    assert sum(message is not None for message in found.messages) == 6
    assert sorted(pair for *pair, _ in found.rank_pairs()) == [[0, 1], [1, 2], [2, 0]]


def test_summands_by_either_name(tmp_path):
    """The summand that is kept may be named by the source or by the target of a step."""
    for source in (("i", 0), ("s", 0), ("i", -1)):
        program = generators.Program("pair", "reduce", 2, 1)
        program.add(1, (0, -1), "s", ("i", 0), ("i", 0))
        program.add(0, (-1, 1), "rrc", source, ("i", 0))
        assert read(tmp_path, program.text()).buffers.collective.root == 0


def test_chunks_of_gpus_will_do(tmp_path):
    """A file without nchunksperloop is read by the chunks of its gpus."""
    text = changed(RING, ".", nchunksperloop=None)
    assert read(tmp_path, text).buffers.chunks == 1
    with pytest.raises(tf.InputError, match="The algo must have the attribute nchunksperloop"):
        read(tmp_path, text.replace("i_chunks", "x").replace("o_chunks", "y"))


def test_other_types_and_scratch(tmp_path):
    """Sums through scratch buffers or of several chunks, and the types cpy, re and nop are read."""
    program = generators.Program("pairs", "allreduce", 2, 2, in_place=False)
    for rank in range(2):
        other, mine, theirs = 1 - rank, rank, 1 - rank
        program.add(rank, (-1, -1), "cpy", ("i", 0), ("o", 0), 2)
        program.add(rank, (other, -1), "s", ("i", theirs), ("s", 0))
        program.add(rank, (-1, other), "r", ("i", mine), ("s", 0))
        program.add(rank, (-1, -1), "re", ("s", 0), ("o", mine))
        program.add(rank, (-1, -1), "nop", ("i", -1), ("o", -1))
    for rank in range(2):
        other, mine, theirs = 1 - rank, rank, 1 - rank
        program.add(rank, (other, -1), "s", ("o", mine), ("o", mine), channel=1)
        program.add(rank, (-1, other), "r", ("o", theirs), ("o", theirs), channel=1)
    (tmp_path / "file.xml").write_text(program.text())
    schedule = tf.import_schedule(tmp_path / "file.xml", "2")
    tf.check(schedule)
    assert (schedule.form, schedule.steps, schedule.chunks) == ("table", 2, 2)


def test_own_blocks_need_no_copy(tmp_path):
    """A rank has its own blocks, whether the file copies them or not."""
    program = generators.Program("exchange", "alltoall", 2, 2, in_place=False)
    for rank in range(2):
        other = 1 - rank
        program.add(rank, (other, -1), "s", ("i", other), ("o", rank))
        program.add(rank, (-1, other), "r", ("i", rank), ("o", other))
    (tmp_path / "file.xml").write_text(program.text())
    schedule = tf.import_schedule(tmp_path / "file.xml", "2")
    tf.check(schedule)
    assert (schedule.steps, schedule.chunks) == (1, 1)


def pairs(*, root=None):
    """A broadcast file in which rank 1 of three sends to the others."""
    program = generators.Program("star", "broadcast", 3, 2)
    for target in (0, 2):
        program.move(1, target, 0, 2)
    text = program.text()
    return text if root is None else text.replace("<algo ", f'<algo root="{root}" ')


def test_roots(tmp_path):
    """The root is the rank that receives nothing, or the one that the file names."""
    assert read(tmp_path, pairs()).buffers.collective.root == 1
    assert read(tmp_path, pairs(root=1)).buffers.collective.root == 1
    with pytest.raises(tf.InputError, match="Root must be a gpu from 0 to 2, not 3"):
        read(tmp_path, pairs(root=3))
    with pytest.raises(tf.InputError, match="thread block 0, step 0 must read what was written"):
        read(tmp_path, pairs(root=2))
    idle = pairs().replace('recv="1"', 'recv="-1"').replace('type="r"', 'type="nop"')
    idle = idle.replace('type="s"', 'type="nop"')
    with pytest.raises(tf.InputError, match="The root of the broadcast is not clear, for not j"):
        read(tmp_path, idle)


def test_sums_are_moved(tmp_path):
    """In a reduce-scatter, a contribution that is sent along two paths is refused."""
    again = (
        r"gpu (\d), thread block 2, step 0 must not send the contribution of gpu \1 to chunk 0 for "
        r"rank 0 a second time, after gpu \1, thread block 0, step 0: partial sums are moved, not"
    )
    with pytest.raises(tf.InputError, match=again):
        read(tmp_path, generators.doubling_exchange(4, 4, collective="reduce_scatter"))


@pytest.mark.parametrize(("topology", "chunks"), [("2x2", 3), ("2x2", 4), ("cube:3", 1)])
def test_sums_are_copied(tmp_path, topology, chunks):
    """All-reduces whose nodes keep their sums and send earlier ones are imported and built."""
    path, network = tmp_path / "file.xml", tf.parse_topology(topology)
    path.write_text(generators.doubling_exchange(network.nodes, chunks))
    assert read_dataflow(path).kept
    schedule = tf.import_schedule(path, network)
    assert schedule.form == "table"
    tf.check(schedule)
    assert tf.simulate(tf.Fabric(tf.compile(schedule, flits=2 * chunks), width=8)).passed


def test_contributions_are_passed_on(tmp_path):
    """Nodes that pass on contributions, not their sums, are imported and built."""
    ranks, program = 5, generators.Program("passing", "allreduce", 5, 1)
    for hop in range(2):
        moves = [(rank, way, 2 * hop + (way > 0)) for way in (1, -1) for rank in range(ranks)]
        for rank, way, slot in moves:
            at = ("s", slot - 2) if hop else ("i", 0)
            program.add(rank, ((rank + way) % ranks, -1), "s", at, ("s", slot))
        for rank, way, slot in moves:
            peers = -1, (rank - way) % ranks
            program.add(rank, peers, "r", ("i", 0), ("s", slot))
            program.add(rank, peers, "re", ("s", slot), ("i", 0))
    path = tmp_path / "file.xml"
    path.write_text(program.text().replace('s_chunks="1"', 's_chunks="4"'))
    schedule = tf.import_schedule(path, "5")
    tf.check(schedule)
    assert isinstance(schedule, SumTable)
    assert sorted(schedule.passed.ravel().tolist()) == [-1, -1, 0, 1]
    assert tf.simulate(tf.Fabric(tf.compile(schedule, flits=4), width=8)).passed


def test_sums_that_are_kept_are_not_replaced(tmp_path):
    """A contribution that is added twice is refused."""
    program = generators.Program("twice", "allreduce", 2, 1)
    program.add(0, (1, -1), "s", ("i", 0), ("s", 0))
    program.add(1, (-1, 0), "r", ("i", 0), ("s", 0))
    for rank in range(2):
        program.add(rank, (1 - rank, -1), "s", ("i", 0), ("i", 0))
        program.add(rank, (-1, 1 - rank), "rrc", ("i", 0), ("i", 0))
    path = tmp_path / "file.xml"
    path.write_text(program.text())
    twice = "gpu 0, thread block 0, step 0 must add each contribution once, not chunk 0 of gpu 0"
    with pytest.raises(tf.InputError, match=twice):
        tf.import_schedule(path, "2")


def test_sums_beside_each_other(tmp_path):
    """A sum that arrives before another one leaves, without being added to it, is passed on."""
    program = generators.Program("chain", "reduce", 3, 1)
    program.add(0, (1, -1), "s", ("i", 0), ("s", 0))
    program.add(1, (2, 0), "r", ("i", 0), ("s", 0))
    program.add(1, (2, 0), "s", ("i", 0), ("i", 0))
    program.add(1, (2, 0), "s", ("s", 0), ("i", 0))
    for _ in range(2):
        program.add(2, (-1, 1), "rrc", ("i", 0), ("i", 0))
    path = tmp_path / "file.xml"
    path.write_text(program.text())
    schedule = tf.import_schedule(path, "3", root=2)
    assert schedule.keeps_sums
    tf.check(schedule)


def test_many_steps_take_no_time(tmp_path):
    """Ten thousand steps are read within two seconds of processor time."""
    text = generators.ring_allgather(100)
    began = time.process_time()
    found = read(tmp_path, text)
    assert len(found.graph.steps) == 10_000
    assert time.process_time() - began < 2


@pytest.mark.parametrize(("size", "read_as"), [(None, None), ("-1", None), ("0", 0), ("7", 7)])
def test_sizes_of_scratch_buffers(tmp_path, size, read_as):
    text = changed(RING, "gpu[@id='1']", s_chunks=size)
    assert read(tmp_path, text).file.scratch[1] == read_as
