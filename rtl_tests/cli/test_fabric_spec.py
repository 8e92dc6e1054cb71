# ruff: noqa: SLF001  argparse has no public way to look at a parser
"""`FabricSpec`: a value with all choices, made from keywords, from words or from a manifest."""

import argparse
import copy
import json
import pickle
import shlex

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.cli import main, make_parser
from torusfabric.fabric.choose import PlanPurpose, choose_schedules
from torusfabric.fabric.options import fabric_options

#: Selections with choices of every kind.
LINES = (
    "2x3 allgather --width 8 --flits 3",
    "2x3 allgather,allreduce@1 --max-flits 4 --op add,max --width 16 --bus axi4",
    "3x3 reduce --root any --max-flits 5 --signed --op max --beat 1",
    "2x2 allgather --top stream --clocks per-node --timeout 99 --width 8 --max-flits 2",
    "3x3!0:+0 broadcast --root 2 --broken-link 1:+1 --algorithm any-network --top core",
    "2x2 allgather,reduce --tables ram --rows 20 --inputs all --max-flits 3",
    "2 allgather --boards 2 --width 8 --max-flits 3",
    "2x2 allgather,barrier --top stream --width 8 --max-flits 3",
    "2x3 allgather --link-latency 0:3 --width 8 --flits 2",
)


@pytest.mark.parametrize("line", LINES)
def test_words_and_keywords_are_the_same_choices(line):
    """Words, keywords and texts give the same specification."""
    spec = tf.FabricSpec.parse(line)
    assert tf.FabricSpec.parse(shlex.join(spec.words())) == spec
    assert tf.FabricSpec(**spec.given()) == spec
    as_text = {name: value if isinstance(value, bool | tuple) else str(value)
               for name, value in spec.given().items()}  # fmt: skip
    assert tf.FabricSpec(**as_text) == spec
    assert hash(tf.FabricSpec(**as_text)) == hash(spec)


@pytest.mark.parametrize("line", LINES)
def test_a_manifest_makes_its_fabric_again(line, tmp_path, capsys):
    """The command in a manifest makes the same fabric, and so do the decided choices."""
    assert main(["verilog", *line.split(), "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    command = json.loads((tmp_path / "manifest.json").read_text())["command"]
    again, made = tf.FabricSpec.parse(command).make(), tf.FabricSpec.parse(line).make()
    assert again.fabric.digest == made.fabric.digest
    decided = made.spec.replace(**made.decided_choices())
    assert decided.make().fabric.digest == made.fabric.digest
    assert (again.system is None) == (made.system is None) == ("--boards" not in line)


#: Selections of several collectives, and of one collective.
SEVERAL = [
    "2x2 allgather,allreduce --flits 64 --forms long",
    "2x2 allgather,reduce --link-latency 3 --flits 4 --root 1",
    "2x2 allgather:matching,allreduce --link-latency 0:2,1:1 --latency auto",
    "2 allgather,allreduce --boards 2 --flits 2",
    "3 broadcast,scatter --max-flits 64 --forms short --root any",
    "2x3 allgather,allgather!0:+0 --flits 4",
    "2x2 alltoall,halo --chunks 4 --ports 4",
]
ONE = [
    "9 broadcast --max-flits 32 --forms all",
    "3x3 reduce-scatter --op min --signed --latency auto",
    "3x3 broadcast@1 --root any",
    "--plan plan.json",
    "2x3 reduce --root any --flits 9 --op max",
    "3x3 gather@0 --root any",
    "3x3 broadcast --algorithm max-flow --broken-link 7:+0 --root 2",
    "arrowhead:1 broadcast --times 3 1 12",
]


@pytest.mark.parametrize("line", [*SEVERAL, *few(4, ONE, tuples=True)])
def test_files_are_the_same(capsys, tmp_path, monkeypatch, line):
    """The command in a manifest writes the same files again."""
    monkeypatch.chdir(tmp_path)
    tf.plan("4x4", "allreduce").save("plan.json")
    assert main(["verilog", *line.split(), "--width", "8", "-o", "once"]) == 0
    command = json.loads((tmp_path / "once/manifest.json").read_text())["command"]
    _, *words = shlex.split(command)
    assert main([*words, "-o", "again"]) == 0, (command, capsys.readouterr().err)
    for name in ("fabric.v", "manifest.json"):
        once, again = ((tmp_path / folder / name).read_text() for folder in ("once", "again"))
        assert once == again


def test_choices_have_their_defaults():
    """Choices have their defaults, and an unknown choice is an error."""
    spec = tf.FabricSpec("4x4", "allgather")
    assert (spec.width, spec.top, spec.bus, spec.beat, spec.broken_link) == (
        32, "host", None, "auto", ())  # fmt: skip
    assert spec.replace(width=8).replace(width=None) == spec
    assert set(spec.given()) == {"topology", "collective"}
    with pytest.raises(AttributeError, match="FabricSpec has no choice wdith"):
        _ = spec.wdith


def test_choices_stay_as_they_are():
    """A specification is immutable, and can be copied and pickled."""
    spec = tf.FabricSpec("4x4", "allgather", width=8)
    with pytest.raises(AttributeError, match=r"replace\(width=..\) returns another"):
        spec.width = 16
    assert pickle.loads(pickle.dumps(spec)) == copy.copy(spec) == spec
    assert spec.width == 8


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"widht": 8}, r"Choice must be one of topology, .* not 'widht' \(did you mean width\?\)"),
        ({"width": -1}, "width must be a non-negative integer, not '-1'"),
        ({"width": True}, "width must be a non-negative integer, not 'True'"),
        ({"bus": "apb"}, "bus must be one of wishbone, axi-lite, axi4, not 'apb'"),
        ({"large": 1}, "large must be True or False, not 1"),
        ({"rows": 3}, "--rows needs --tables ram; give both"),
        ({"plan": "p.json"}, "TOPOLOGY and --plan exclude each other"),
        ({"boards": "2x1", "bus": "axi4"}, "--bus and --boards exclude each other"),
        ({"ppm": 3}, "--ppm needs --boards; give both"),
    ],
)
def test_wrong_choices_are_refused(choices, message):
    """Wrong choices are refused."""
    with pytest.raises(tf.InputError, match=message):
        tf.FabricSpec("4x2", "allgather", **choices)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4x4 allgather --widht 8", "not '--widht'"),
        ("4x4 allgather 3", "not '3'"),
        ("4x4 'allgather", "words as on a command line"),
        ("4x4 allgather --width x", "must be a non-negative integer"),
        ("4x4 allgather --width", "expected one argument"),
    ],
)
def test_wrong_words_are_refused(text, message):
    """Wrong words are refused."""
    with pytest.raises(tf.InputError, match=message):
        tf.FabricSpec.parse(text)


def test_modes_are_planned_for_any_length():
    """Several collectives are planned for runs of any length, one collective for its length."""
    alone, engine = (
        choose_schedules(tf.FabricSpec("2x3", names), PlanPurpose(7))[0].schedule
        for names in ("allgather", "allgather,broadcast")
    )
    assert (alone.chunks, engine.chunks) == (7, 4)


def test_choices_are_the_options_of_commands():
    """The choices are the options of `verilog` that do not concern files."""
    (commands,) = (action.choices for action in make_parser()._actions
                   if isinstance(action, argparse._SubParsersAction))  # fmt: skip
    known = {name: {action.dest: action.default for action in parser._actions}
             for name, parser in commands.items()}  # fmt: skip
    of_commands = known["verilog"] | known["simulate"] | known["build"]
    for name, option in fabric_options().items():
        assert of_commands[name] == option.default, name
    of_files = {"help", "json", "quiet", "verbose", "flow", "templates", "output", "force", "ram"}
    assert {*known["verilog"]} - {*fabric_options()} == of_files
