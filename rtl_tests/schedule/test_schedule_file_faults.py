"""Faults of schedule files are named, and the JSON Schema accepts every file that is read."""

import gzip
import json
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schedules_by_hand import (
    SCHEDULES,
    content,
    ring,
    written,
)

from torusfabric.analysis.check import check
from torusfabric.errors import InputError, ScheduleError
from torusfabric.schedule import (
    Pattern,
)
from torusfabric.schedule.file import load, save
from torusfabric.schedule.parsing import parse_schedule
from torusfabric.schedule.schema import schema


def one(**changes):
    """Rounds in which the second transfer of round 2 has the given changes."""
    good = {"path": [0, 1], "blocks": "all"}
    entry = {key: value for key, value in (good | changes).items() if value is not None}
    return {"rounds": [[], [good, entry]]}


DEEP = {"path": [0, 1], "blocks": "all"}

WRONG = [
    ({"format": "other"}, 'format must be "torusfabric-schedule", not "other"'),
    ({"version": 2}, "version must be 1, not 2"),
    ({"version": True}, "version must be 1, not true"),
    ({"ports": None}, "Schedule must have ports"),
    ({"duplx": "half"},
     "Schedule must have no keys but format, version, topology, collective, algorithm, switchi"),
    ({"topology": {"kind": "mesh"}},
     'Topology must be {"kind": "torus", "sides": [..]} or {"kind": "arrowhead", "order": ..} or'),
    ({"topology": {"kind": "torus", "sides": [0, 8]}},
     "topology.sides[0] must be a side length of at least 1, not 0"),
    ({"topology": {"kind": "torus", "sides": [1, 8]}},
     "Sides of a torus must be integers of at least 2, not '1x8'"),
    ({"topology": {"kind": "torus", "sides": ["8"]}},
     'topology.sides[0] must be a side length of at least 1, not "8"'),
    ({"topology": {"kind": "torus", "sides": [9**5, 9**5]}},
     "Torus must have at most 2147483647 nodes, not 3486784401"),
    ({"topology": {"kind": "torus", "sides": [8192, 8192]}},
     "Topology must have at most 134217728 arcs, not 8192x8192"),
    ({"topology": {"kind": "torus", "sides": [10**4000] * 2}},
     "Topology must have at most 134217728 arcs, not sides [1000000000000000000000000000000000"),
    ({"topology": {"kind": "torus", "sides": [2] * 99}},
     "topology.sides must be a list of at most 31 side lengths, not [2, 2, 2, 2, 2, 2, 2, 2, "),
    ({"topology": {"kind": "torus", "sides": [2] * 31}},
     "Topology must have at most 134217728 arcs, not sides [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2"),
    ({"rounds": [[]] * (2**18 + 1)}, "rounds must be a list of at most 262144 rounds, not 262145"),
    ({"collective": {"kind": "multicast"}},
     "Collective must be one of broadcast, allgather, scatter, gather, alltoall, reduce, reduc"),
    ({"collective": "broadcast"},
     'collective must be an object such as {"kind": "allgather"} or {"kind": "broadcast", "roo'),
    ({"collective": {"kind": "broadcast", "root": 6}}, "Root must be a node from 0 to 5, not 6"),
    ({"collective": {"kind": "broadcast", "root": True}},
     "collective.root must be a node number, not true"),
    ({"collective": {"kind": "allgather", "root": 1}},
     "allgather has no root; leave the root 1 out"),
    ({"switching": "wormhole"}, 'switching must be store-and-forward or circuit, not "wormhole"'),
    ({"switching": []}, "switching must be store-and-forward or circuit, not []"),
    ({"duplex": 2}, "duplex must be full or half, not 2"),
    ({"ports": 5}, "ports must be a number from 1 to 4, not 5"),
    ({"ports": 1.0}, "ports must be a positive number of messages, not 1.0"),
    ({"chunks": 0}, "chunks must be a positive number of blocks, not 0"),
    ({"chunks": 10**18}, "chunks must be a number from 1 to 33554432, not 1000000000000000000"),
    ({"chunks": 10**6, "collective": {"kind": "alltoall"}},
     "Blocks must be at most 33554432, not 36000000"),
    ({"algorithm": 3}, "algorithm must be a name of 1 to 100 characters that can be printed, n"),
    ({"algorithm": ""}, 'that can be printed, not ""'),
    *(
        ({"algorithm": f"x{odd}y"}, f'that can be printed, not {json.dumps(f"x{odd}y")}')
        for odd in "\x00\n\x1b\x7f\x9b\u2028\u202e\ufeff"
    ),
    ({"algorithm": "x" * 101}, 'that can be printed, not "xxxxxxxxxx'),
    ({"rounds": {}}, "rounds must be a list of rounds, not {}"),
    ({"rounds": [[], 7]}, "rounds[1] must be a list of transfers, not 7"),
    ({"rounds": [[DEEP, []]]},
     'rounds[0][1] must be an object such as {"path": [..], "blocks": ..}, not []'),
    (one(blocks=None), "rounds[1][1] must have blocks"),
    (one(extra=1),
     'rounds[1][1] must have no keys but path, via, sum, passes, blocks, not "extra"'),
    (one(path=[0]), "rounds[1][1].path must be a list of at least two nodes, not [0]"),
    (one(path="01"), 'rounds[1][1].path must be a list of at least two nodes, not "01"'),
    (one(path=[0, 6]), "rounds[1][1].path must lead over nodes from 0 to 5, not 6"),
    (one(path=[0, -1]), "rounds[1][1].path[1] must be a node number, not -1"),
    (one(path=[0, True]), "rounds[1][1].path[1] must be a node number, not true"),
    (one(path=[0, 10**99]),
     "rounds[1][1].path must lead over nodes from 0 to 5, not 10000000000000000000000000000000"),
    (one(path=[0, 1, 5]), "rounds[1][1].path must go from node 1 to one of its neighbours, not 5"),
    (one(path=[0, 0]), "rounds[1][1].path must go from node 0 to one of its neighbours, not 0"),
    (one(path=[0, 3]), "rounds[1][1].via must say which of +0 and -0 leads from node 0 to 3"),
    (one(path=[0, 3], via=[]),
     "rounds[1][1].via must be a list of out-ports, one for each hop of the path, not []"),
    (one(path=[0, 3], via=["+1"]), "rounds[1][1].via must lead from node 0 to 3, not +1"),
    (one(path=[0, 3], via=["up"]),
     "rounds[1][1].via: Port must be one of +0, -0, +1, -1, not 'up'"),
    (one(path=[0, 1], via=["-1"]), "rounds[1][1].via must lead from node 0 to 1, not -1"),
    (one(sum=0), "rounds[1][1] must be an object with either blocks or a sum, not {"),
    (one(passes="+0"), "rounds[1][1] must be an object such as {"),
    (one(blocks=None, sum=0), "rounds[1][0] must have sum, as other transfers have, not blocks"),
    (one(blocks=None, sum=1), "rounds[1][1].sum must be a chunk from 0 to 0, not 1"),
    (one(blocks=None, sum=True), "rounds[1][1].sum must be the number of a chunk, not true"),
    (one(blocks=None, sum=0, passes=[]),
     "rounds[1][1].passes must be the name or number of a port, not []"),
    (one(blocks=None, sum=0, passes="up"),
     "rounds[1][1].passes: Port must be one of +0, -0, +1, -1, not 'up'"),
    (one(blocks=[]), 'rounds[1][1].blocks must be "all" or a list of at least one block, not []'),
    (one(blocks="some"),
     'rounds[1][1].blocks must be "all" or a list of at least one block, not "some"'),
    (one(blocks=[[0]]),
     "rounds[1][1].blocks[0] must be [origin, chunk] or [origin, destination, chunk], not [0]"),
    (one(blocks=[7]),
     "rounds[1][1].blocks[0] must be [origin, chunk] or [origin, destination, chunk], not 7"),
    (one(blocks=[[0, True]]), "rounds[1][1].blocks[0][1] must be a whole number, not true"),
    (one(blocks=[[0, 1]]),
     "rounds[1][1].blocks[0]: Block must lie within 6 nodes and 1 chunks, not [0, 1]"),
    (one(blocks=[["*", 0]]),
     "rounds[1][1].blocks[0]: Block must be [origin, chunk], not ['*', 0]"),
    (one(blocks=[["?", 0]]),
     'rounds[1][1].blocks[0][0] must be a whole number, or "*" for all contributions that the '),
    (one(blocks=[[0, "*"]]), 'rounds[1][1].blocks[0][1] must be a whole number, not "*"'),
    (one(blocks=[[6, 0]]),
     "rounds[1][1].blocks[0]: Block must lie within 6 nodes and 1 chunks, not [6, 0]"),
    (one(blocks=[[0, 10**30]]),
     "rounds[1][1].blocks[0]: Block must lie within 6 nodes and 1 chunks, not [0, 100000000000"),
    (one(blocks=[[1, 0]]),
     "rounds[1][1].blocks[0]: Block must have the root 0 as its origin, not [1, 0]"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_content_is_named(changes, message, tmp_path, monkeypatch):
    """Each fault is named with its location, in one line."""
    monkeypatch.setattr("torusfabric.schedule.parsing.available_memory", lambda: 2**60)
    path = written(tmp_path, content(**changes))
    with pytest.raises(InputError, match=f"^Schedule file {re.escape(str(path))}") as info:
        load(path)
    assert message in str(info.value)
    assert "\n" not in str(info.value)
    assert info.value.status == 1


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("x.json", b"", "must be JSON: Expecting value: line 1 column 1"),
        ("x.json", b'{"format": ', "must be JSON: Expecting value"),
        ("x.json", b"\xff\xfe", "must be JSON: 'utf-8' codec can't decode"),
        ("x.json", b"[" * 10**6, "must be JSON: "),
        ("x.json", b"9" * 5000, "must be JSON: Exceeds the limit"),
        ("x.json", b'{"a": [0, {"b": 1, "c": 2, "b": 1}]}',
         'must be JSON: an object has the key "b" twice'),
        ("x.json", b'{"b": 1, "b": {}}',
         'must be JSON: an object has the key "b" twice'),
        ("x.json", b'{"b": {"c": 1, "c": 1}, "b": 1}',
         'must be JSON: an object has the key "c" twice'),
        ("x.json", b'{"a": [{"c": 1, "c": 1}], "b": {"d": 1, "d": 1}}',
         'must be JSON: an object has the key "c" twice'),
        ("x.json", b'{"b\\u001b": 1, "b\\u001b": 1}',
         r'must be JSON: an object has the key "b\u001b"'),
        ("x.json", rb'{"a": "\ud800"}', "must be JSON: half of a surrogate pair stands alone"),
        ("x.json", rb'{"\uDFFFa": 1}', "must be JSON: half of a surrogate pair stands alone"),
        ("x.json", b'{"a": NaN}', "must be JSON: NaN is no number"),
        ("x.json", b'{"a": -Infinity}', "must be JSON: -Infinity is no number"),
        ("x.json", b"[]", "Schedule must be an object with the keys of a schedule, not []"),
        ("x.json.gz", b"{}", "cannot be unpacked, for it is incomplete or damaged: Not a gzipped"),
        ("x.json.gz", gzip.compress(b"{}", mtime=0)[:-3],
         "cannot be unpacked, for it is incomplete or damaged: Compressed"),
        ("x.json.gz", gzip.compress(b"x" * 999, mtime=0)[:12] + b"\xff" * 20,
         "cannot be unpacked, for it is incomplete or damaged"),
    ],
)  # fmt: skip
def test_wrong_bytes_are_named(name, raw, message, tmp_path):
    """A file that cannot be decoded is an input error with one line."""
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(InputError, match=r"^Schedule file \S+ " + re.escape(message)) as info:
        load(tmp_path / name)
    assert "\n" not in str(info.value)


def test_deep_nesting_is_refused(tmp_path):
    """Deep nesting that a JSON reader accepts is refused with an input error."""
    for depth in range(100, 1000, 100):
        text = json.dumps(content(rounds="deep")).replace('"deep"', "[" * depth + "]" * depth)
        (tmp_path / "x").write_text(text)
        with pytest.raises(InputError, match=r"^Schedule file "):
            load(tmp_path / "x")


def test_pairs_of_surrogates_are_characters(tmp_path):
    """A surrogate pair in JSON is read as one character."""
    raw = json.dumps(content(algorithm="a\U0001f600b"))
    assert r"\ud83d\ude00" in raw
    (tmp_path / "x").write_text(raw)
    assert load(tmp_path / "x").algorithm == "a\U0001f600b"


def test_missing_file_and_directory(tmp_path):
    """A file that cannot be opened or written is named, with the reason."""
    with pytest.raises(InputError, match=r"^Schedule file \S+ could not be read: No such file"):
        load(tmp_path / "none.json")
    with pytest.raises(InputError, match=r"^Schedule file \S+ could not be read: Is a directory"):
        load(tmp_path)
    with pytest.raises(InputError, match=r"^File \S+ cannot be written \(No such file"):
        save(ring(), tmp_path / "none" / "x.json")
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match=r"^File \S+ cannot be written \(Is a directory"):
        save(ring(), tmp_path / "taken")
    assert os.listdir(tmp_path) == ["taken"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_unwritable_directory(tmp_path):
    """A folder without write permission is refused in one line."""
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match=r"^File \S+ cannot be written \(Permission"):
            save(ring(), tmp_path / "x.json")
    finally:
        tmp_path.chmod(0o700)


def test_failure_halfway_leaves_the_old_file(tmp_path, monkeypatch):
    """An interrupted write leaves the old file and no other."""
    save(ring(), tmp_path / "x.json")
    before = (tmp_path / "x.json").read_bytes()

    whole = list(ring(8).rounds())

    def stop(self):
        yield whole[0]
        raise KeyboardInterrupt

    monkeypatch.setattr(Pattern, "rounds", stop)
    with pytest.raises(KeyboardInterrupt):
        save(ring(8), tmp_path / "x.json")
    assert os.listdir(tmp_path) == ["x.json"]
    assert (tmp_path / "x.json").read_bytes() == before


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.sampled_from(SCHEDULES), st.booleans(), st.data())
def test_damaged_bytes(tmp_path_factory, schedule, compressed, data):
    """Damaged bytes give an error of the file or of its schedule, in one line."""
    path = tmp_path_factory.mktemp("damage") / ("x.gz" if compressed else "x")
    save(schedule, path)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        digits = st.sampled_from(list(b'0123456789-[]{},"'))
        raw[at] = data.draw(digits if data.draw(st.booleans()) else st.integers(0, 255))
    path.write_bytes(bytes(raw))
    try:
        message = str(check(load(path)))
    except (InputError, ScheduleError) as error:
        message = str(error)
    assert "\n" not in message


ODD = st.recursive(
    st.sampled_from([None, True, 0, 1, 5, -1, 1.0, 10**30, "all", "+0", "path"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)

ENTRY = st.fixed_dictionaries(
    {"path": st.just([0, 1]) | ODD, "blocks": st.sampled_from(["all", [[0, 0]]]) | ODD},
    optional={"via": st.just(["+1"]) | ODD, "more": ODD},
)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.lists(ENTRY | ODD, max_size=2) | ODD, max_size=2))
def test_files_are_judged_as_by_the_schema(rounds):
    """A file that is read is valid by the schema; any other is refused in one line."""
    data = content(rounds=rounds)
    faults = list(Draft202012Validator(schema()).iter_errors(data))
    try:
        parse_schedule(data)
    except InputError as error:
        message = str(error)
    else:
        assert not faults
        message = ""
    assert "\n" not in message


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.algorithm + str(s.collective))
def test_files_keep_to_the_schema(schedule, tmp_path):
    """A written file is valid by the schema."""
    Draft202012Validator.check_schema(schema())
    save(schedule, tmp_path / "plan.json")
    data = json.loads((tmp_path / "plan.json").read_text())
    Draft202012Validator(schema()).validate(data)
