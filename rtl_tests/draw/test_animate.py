"""Animations: a page that needs no other file, and its content."""

import json
import re

import pytest
from helpers import check_refused, few, program_of

from torusfabric.cli import main
from torusfabric.draw.animate import animation_page
from torusfabric.errors import InputError


def data_of(text):
    """Return the data of a page."""
    return json.loads(re.search(r'type="application/json">(.*?)</script>', text, re.S)[1])


@pytest.mark.parametrize(
    ("topology", "kind", "algorithm"),
    [
        ("4x5", "allgather", "hamiltonian"),
        ("3x3x3", "allgather", "matching"),
        ("3x3", "scatter", "matching"),
        ("arrowhead:2", "broadcast", "wormhole-forest"),
    ],
)
def test_a_replay_ends_with_all_that_is_to_be_received(topology, kind, algorithm):
    """A replay of the moves in a page ends with all blocks that the collective delivers."""
    program = program_of(topology, kind, algorithm)
    chunks, nodes = program.schedule.chunks, program.topology.nodes
    data = data_of(animation_page(program))
    assert len(data["nodes"]) == len(data["names"]) == nodes
    assert len(data["rounds"]) == len(data["cycles"]) == program.schedule.round_count
    held = [set(ids) for ids in data["start"]]
    for moves in data["rounds"]:
        for node, ports, ids in moves:
            for port in ports:
                node = data["near"][node][port]
            held[node] |= set(ids)
    for node, ids in enumerate(held):
        blocks = {tuple(data["blocks"][id][:3]) for id in ids}
        if kind == "allgather":
            assert blocks == {(o, -1, c) for o in range(nodes) for c in range(chunks)}
        elif kind == "scatter":
            assert blocks >= {(0, node, c) for c in range(chunks)}
        else:
            assert blocks == {(0, -1, c) for c in range(chunks)}
    assert data["cycles"] == sorted(data["cycles"])
    assert data["cycles"][-1] == program.cycles() - 1


def test_blocks_of_groups_are_those_of_their_nodes():
    """Origins and destinations in a page are nodes, and no block leaves its group."""
    program = program_of("3x4", "alltoall@1", "matching")
    data = data_of(animation_page(program))
    assert len(data["blocks"]) == 3 * 4 * 4
    held = [set(ids) for ids in data["start"]]
    for moves in data["rounds"]:
        for node, ports, ids in moves:
            assert {data["blocks"][id][0] // 4 for id in ids} == {node // 4}
            for port in ports:
                node = data["near"][node][port]
            held[node] |= set(ids)
    for node, ids in enumerate(held):
        mine = {origin for origin, to, *_ in map(data["blocks"].__getitem__, ids) if to == node}
        assert mine == set(range(node // 4 * 4, node // 4 * 4 + 4))


def test_blocks_of_listed_groups_pass_through_other_nodes():
    """A page of listed groups has the nodes of each group, and the contributions to its sums."""
    program = program_of("4x4", "allreduce@{0,10}{2,8,15}", "any-traffic")
    data = data_of(animation_page(program))
    held = [set(ids) for ids in data["start"]]
    chunks = program.schedule.chunks
    assert [len(ids) for ids in held] == [chunks * (k in (0, 2, 8, 10, 15)) for k in range(16)]
    for moves in data["rounds"]:
        for node, ports, ids in moves:
            for port in ports:
                node = data["near"][node][port]
            held[node] |= set(ids)
            assert 0 <= min(ids) <= max(ids) < len(data["blocks"])
    assert data["whole"] == [2, 3]
    for group, nodes in enumerate(([0, 10], [2, 8, 15])):
        for node in nodes:
            assert {data["blocks"][id][0] for id in held[node] if data["blocks"][id][3] == group} \
                == {*nodes}  # fmt: skip


def test_page_needs_nothing_else():
    """A page refers to no other file."""
    text = animation_page(program_of("3x3", "allgather"))
    assert text.startswith("<!doctype html>")
    assert not re.search("@[A-Z]+@", text)
    assert not re.search(r"https?:|src=|@import|url\(", text)
    assert "<title>3x3 allgather, " in text


def test_too_much_to_show(monkeypatch):
    """Networks with too many nodes or blocks are refused."""
    monkeypatch.setattr("torusfabric.draw.frame.MAX_NODES", 8)
    with pytest.raises(
        InputError, match=r"^Animation must have at most 8 nodes, not 9; choose a smaller network$"
    ):
        animation_page(program_of("3x3", "allgather"))
    monkeypatch.setattr("torusfabric.draw.frame.MAX_NODES", 9)
    monkeypatch.setattr("torusfabric.draw.animate.MAX_BLOCKS", 100)
    with pytest.raises(InputError, match=r"^An animation moves at most 100 blocks"):
        animation_page(program_of("3x3", "allgather"))


def test_command(tmp_path, capsys):
    """The command writes a page; a folder that does not exist is an error."""
    page = tmp_path / "play.html"
    assert main(["animate", "4x4", "allgather", "--flits", "6", "-o", str(page), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["file"] == str(page)
    assert facts["bytes"] == page.stat().st_size
    assert "clock cycles for 6 flits" in page.read_text()
    assert main(["animate", "4x4", "allgather", "-o", str(tmp_path / "no" / "play.html")]) == 1
    assert "/no cannot be written (" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "ends"),
    few(
        3,
        [
            (("3x3", "allgather", "--word", "0:4", "--flits", "2", "--flit", "1"), (0, 4)),
            (("4x4", "allgather:hamiltonian"), None),
            (("4x4", "reduce", "--flits", "4"), None),
            (("3x3", "allreduce", "--word", "8:0"), (8, 0)),
            (("arrowhead:2", "broadcast"), None),
            (("3x3", "alltoall,allreduce", "--mode", "1"), None),
        ],
    ),
)
def test_a_word_by_cycles(words, ends, tmp_path, capsys):
    """With --cycles, page and report contain the stages of a word, and their code."""
    page = tmp_path / "word.html"
    assert main(["animate", *words, "--cycles", "-o", str(page), "--json"]) == 0
    facts, data = json.loads(capsys.readouterr().out), data_of(page.read_text())
    stages = facts["stages"]
    assert [list(stage.values()) for stage in stages] == data["stages"]
    found = stages[0]["node"], stages[-1]["node"]
    assert facts["word"] == f"{found[0]}:{found[1]}"
    assert ends in (None, found)
    here = found[0]
    for stage in stages:
        if stage["port"] >= 0:
            assert stage["node"] == here
            here = data["near"][here][stage["port"]]
        text = data["code"][f"{stage['file']}:{stage['line']}"]
        name = stage["code"].rpartition(".")[2]
        assert f"def {name}(" in text.splitlines()[0]
    assert here == found[1]
    cycles = [stage["cycle"] for stage in stages]
    assert cycles == sorted(cycles)
    assert cycles[-1] <= max(data["cycles"]) + 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--word", "0:1"), "--word needs --cycles; give both"),
        (("--flit", "0"), "--flit needs --cycles; give both"),
        (("--cycles", "--word", "0-1"), "--word must be two node numbers, ORIGIN:DESTINATION, not"),
        (("--cycles", "--word", "0:9"), "Destination must be a node from 0 to 8, not 9"),
        (("--cycles", "--word", "4:4"), "Destination must be another node than the origin, not 4"),
        (("--cycles", "--flit", "2"), "Flit must be from 0 to 1, not 2"),
    ],
)
def test_a_word_that_does_not_go(words, message, tmp_path, capsys):
    """A word or flit that does not exist is refused in one line, without a file."""
    page = tmp_path / "word.html"
    said = check_refused(capsys, "animate", "3x3", "allgather", "--flits", "2", *words, "-o", page)
    assert message in said
    assert not page.exists()
