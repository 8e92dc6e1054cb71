"""Every option of every command, with empty values, repeated values and excessive numbers."""

import argparse
import functools

import numpy as np
import pytest
from helpers import command_actions, few

import torusfabric as tf
from torusfabric.cli import main, make_parser

# ruff: noqa: SLF001 (argparse has no other way to its options)

#: A valid value of an option, by the function that reads it.
VALUES = {
    "parse_non_negative_int": "1",
    "parse_positive_int": "1",
    "parse_number": "1",
    "parse_probability": "0.1",
    "parse_node_or_any": "1",
    "parse_positive_or_auto": "1",
    "parse_lengths": "1",
    "parse_constants": "alpha=1",
    "node_pair": "0:1",
    "folder_argument": "out",
}

#: Digits of other scripts: full width, Arabic, Devanagari, superscript.
DIGITS = ["１", "٣", "४", "²"]


@functools.cache
def _parser():
    return make_parser()


def _with_values():
    """Return command and option of all options that take a value."""
    return [
        pytest.param(name, action, id=f"{name} {action.option_strings[-1]}")
        for name, action in command_actions(_parser())
        if action.option_strings and action.nargs != 0
    ]


def _value(action):
    """Return a valid value of an option."""
    if action.choices is not None:
        return next(iter(action.choices))
    return VALUES[action.type.__name__] if action.type else "x"


def _error(words):
    """Return the error of a command line, or an empty text."""
    try:
        _parser().parse_args(words)
    except tf.InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("command", "action"), _with_values())
def test_no_value_is_empty(command, action):
    """An empty value, such as an unset shell variable, is refused by every option."""
    more = [_value(action)] * ((action.nargs or 1) - 1)
    for option in action.option_strings:
        for blank in ("", " ", "\t"):
            message = _error([command, "3", "allgather", option, blank, *more])
            assert message.startswith(f"{'/'.join(action.option_strings)} must have a value, not")
        if option.startswith("--") and not more:
            assert "must have a value, not an empty one" in _error([command, f"{option}="])


@pytest.mark.parametrize(("command", "action"), _with_values())
def test_no_value_replaces_another(command, action):
    """An option that is given twice is refused, unless it can be repeated."""
    given = [action.option_strings[0], *[_value(action)] * (action.nargs or 1)]
    again = [action.option_strings[-1], *given[1:]]
    message = _error([command, *given, *again])
    once = f"{'/'.join(action.option_strings)} must be given once, not several times"
    if isinstance(action, argparse._AppendAction):
        assert "must be given once" not in message
        found = _parser().parse_args(["plan", "3", "broadcast", *2 * ["--broken-link", "0:+0"]])
        assert found.broken_link == ["0:+0", "0:+0"]
    else:
        assert message.startswith(once)


def test_flags_say_the_same_again():
    """A flag may be given twice."""
    for name, action in command_actions(_parser()):
        if isinstance(action, argparse._StoreTrueAction):
            assert "given once" not in _error([name, *2 * [action.option_strings[-1]]])


@pytest.mark.parametrize("digit", DIGITS)
def test_numbers_are_of_ascii_digits(digit):
    """Options that take a number refuse digits of other scripts, alone and beside a plain digit."""
    for command, action in command_actions(_parser()):
        if (
            action.type is None
            or not action.option_strings
            or action.type.__name__ == "folder_argument"
        ):
            continue
        for text in (digit, f"1{digit}"):
            value = VALUES[action.type.__name__].replace("1", text)
            if action.type.__name__ == "parse_constants":
                continue  # constants are read once the model is known
            message = _error([command, action.option_strings[-1], *[value] * (action.nargs or 1)])
            assert message, (command, action.option_strings, value)
            assert " must be " in message
            assert digit in message


@pytest.mark.parametrize("digit", DIGITS)
@pytest.mark.parametrize(
    "line",
    [
        "plan {0}x4 allgather",
        "plan 4x{0} allgather",
        "plan mesh:{0}x4 allgather",
        "plan 4|x{0} allgather",
        "plan 8x4~{0} allgather",
        "plan circulant:1{0}:1 allgather",
        "plan circulant:16:1,{0} allgather",
        "plan complete:{0} allgather",
        "plan cube:{0} allgather",
        "plan arrowhead:{0} allgather",
        "plan 4x4!{0} allgather",
        "plan 4x4!{0}:+0 allgather",
        "plan 4x4!0:{0} allgather",
        "plan 4x4!0:+0={0} allgather",
        "plan 4x4 allgather@{0}",
        "plan 4x4 exchange[({0},1)]",
        "plan 4x4 exchange[+{0}]",
        "plan 4x4 allgather!{0}",
        "plan 4x4 allgather --link-latency {0}",
        "plan 4x4 allgather --link-latency 0:{0}",
        "plan 4x4 allgather --link-latency {0}:2",
        "plan 4x4 allgather --link-latency 0:+0={0}",
        "plan 4x4 allgather --rate {0}",
        "plan 4x4 allgather --rate 1/{0}",
        "plan 4x4 allgather --rate {0}:2",
        "plan 4x4%0:{0} allgather",
        "plan 4x4 allgather --broken-node {0}",
        "plan 4x4 allgather --relay {0}",
        "plan 4x4 allgather --relay 0-{0}",
        "plan 4x4!{0}=relay allgather",
        "plan 4x4 allgather --broken-link {0}:+0",
        "plan 4x4 allgather --objective time --costs alpha={0}",
        "draw 4x4 allgather --boards {0}x1 -o a.svg",
        "draw 4x4 allgather,alltoall --mode {0} -o a.svg",
        "verilog 4x4 allgather --ram block:{0} -o out",
    ],
)
def test_texts_are_of_ascii_digits(tmp_path, monkeypatch, capsys, line, digit):
    """Topologies, collectives and other texts refuse digits of other scripts."""
    monkeypatch.chdir(tmp_path)
    assert main(line.format(digit).split()) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert digit in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("plan 4x4 allgather:", "Collective must have an algorithm behind its :, not 'allgather:'"),
        ("plan 4x4 allgather!", "Collective must have faults behind its !, not 'allgather!'"),
        ("plan 4x4 allgather:!9", "Collective must have an algorithm behind its :, not"),
        ("plan 4x4 allgather:matching!", "Collective must have faults behind its !, not"),
        ("simulate 4x4 allgather,alltoall:", "Collective must have an algorithm behind its :, not"),
        ("plan 4x4 allgather@", "Axes must be numbers joined by +, as in allgather@0+2, not ''"),
        ("plan 4x4 exchange[]", "Offsets must be ports or coordinates"),
        ("plan 4x4! allgather", "Broken link must be NODE:PORT with a node below 16, not ''"),
        ("plan 4x4!9, allgather", "Broken link must be NODE:PORT with a node below 16, not ''"),
        ("plan 4x4 allgather --costs alpha=1,alpha=2", "--costs must be of different names, not"),
        ("plan 4x4 allgather --costs alpha=1,", "--costs must be such as alpha=100,tau=1, not"),
        ("plan 4x4 allgather --rate 0:2,0:3", "Rate must be given once for each axis or link, not"),
        (
            "plan 4x4% allgather",
            "Rate must be flits a cycle, from 1/16 to 16, such as 2, 1/2 or 3/2",
        ),
        ("plan 4x4 allgather@0 --rate 2", "4x4%2 has no axes; leave the axes [0] out"),
        ("plan 4x4 allgather --link-latency 0:2,0:3", "Link latency must be given once for each"),
        ("plan 4x4 allgather --link-latency 0:2,00:3", "Link latency must be given once for each"),
        (
            "plan 4x4 allgather --link-latency 0:+0=2,0:+0=3",
            "is also given 2 cycles; give each link",
        ),
        ("plan 4x4!0:+0=2,4:-0=3 allgather", "is also given 2 cycles; give each link one lat"),
        ("simulate 2x2 allreduce --op add,", "Operator must be one of"),
        ("compare 2x2 allgather --width=0", "Width must be from 1 to 1024 bits, not 0"),
        ("compare 2x2 allgather --width=1025", "Width must be from 1 to 1024 bits, not 1025"),
        ("compare 2x2 allgather --flits=0", "Flits must be at least 1, not 0"),
        ("compare 2x2 allgather --max-flits=0", "Flits must be at least 1, not 0"),
        ("compare 2x2 allgather --flits=1:2 --width=0", "Width must be from 1 to 1024 bits, not 0"),
        ("compare 2x2 allgather,alltoall --width=0", "Width must be from 1 to 1024 bits, not 0"),
        ("compare 2x2 allgather,alltoall --max-flits=0", "Flits must be at least 1, not 0"),
        ("run --port sim 2 allgather --width 8 --job=,", "Choice of a job must be one of"),
    ],
)
def test_nothing_is_left_aside(capsys, line, message):
    """Empty parts and repeated names are refused in one line."""
    assert main(line.split()) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


#: A number too large for a float
HUGE = "9" * 310

#: Positional words of a command, and options that it requires.
WORDS = {
    "import": ["plan.json"],
    "boards": [],
    "sweep": ["grid.toml"],
}
MORE = {
    "verilog": ["-o", "out"],
    "build": ["--board", "icebreaker"],
    "flash": ["--board", "icebreaker"],
    "monitor": ["--port", "/dev/null"],
    "run": ["--port", "/dev/null"],
    "synth": ["--target", "ice40-hx8k"],
}

#: Selections in which an option has a meaning.
SELECTED = {
    "--trees": ["3x3", "broadcast", "--algorithm", "spanning-tree"],
    "--packets": ["3x3", "broadcast", "--algorithm", "spanning-tree"],
    "--times": ["3x3", "broadcast", "--algorithm", "spanning-tree"],
    "--chunks": ["3x3", "broadcast"],
    "--latency": ["3x3", "allreduce"],
    "--stall": ["3", "allgather", "--top", "stream"],
}

#: Options for which any number is valid.
ANY = {"--seed", "--data-seed"}


def _options():
    """Return command, option and number of values of all options with a number."""
    return [
        (name, action.option_strings[-1], action.nargs or 1)
        for name, action in command_actions(make_parser())
        if action.type is not None and action.type.__name__ != "folder"
    ]


@pytest.mark.parametrize(("command", "option", "count"), few(83, [*_options()]))
def test_no_option_ends_in_a_traceback(monkeypatch, tmp_path, capsys, command, option, count):
    """An excessive number gives one line and status 1 or 2, unless any number is valid."""
    monkeypatch.chdir(tmp_path)
    tf.plan("2x3", "allgather").save("plan.json")
    np.save("data.npy", np.zeros((3, 2), dtype=np.uint32))
    (tmp_path / "grid.toml").write_text('topologies = ["3"]\ncollectives = ["broadcast"]\n')
    words = WORDS.get(command) or SELECTED.get(option, ["3x3", "allgather"])
    words = [command, *words, *MORE.get(command, []), option, *[HUGE] * count]
    status = main([*words, "--quiet"])
    err = capsys.readouterr().err
    assert len(err.splitlines()) == (status != 0)
    if option not in ANY and (command, option) != ("boards", "--width"):
        assert status in (1, 2)


@pytest.mark.parametrize("options", [{"chunks": 10**400}, {"packets": 10**400}])
def test_numbers_in_python(options):
    """Excessive numbers are refused in Python, too."""
    topology, name = ("3x3", "allgather") if "chunks" in options else ("arrowhead:2", "broadcast")
    with pytest.raises(tf.InputError, match=r"^Planning .* must fit in memory, but needs "):
        tf.plan(topology, name, **options)
