"""The help of commands: a dozen options, examples, and the groups of all other options."""

import re
import shlex

import pytest
from helpers import command_actions, run_command

from torusfabric.cli import main, make_parser
from torusfabric.cli.purposes import COMMON, GROUPS, PURPOSES

COMMANDS = {name: command for group in PURPOSES.values() for name, command in group.items()}

#: Commands with many options.
LARGE = ["verilog", "simulate", "synth", "prove", "plan", "compare", "draw", "build", "run"]


@pytest.fixture(scope="module")
def options():
    """The options of each command by attribute; optional and required options are separate."""
    found: dict[str, tuple[dict[str, str], dict[str, str]]] = {}
    for name, action in command_actions(make_parser()):
        if action.option_strings:
            names = found.setdefault(name, ({}, {}))[action.required]
            names[action.dest] = action.option_strings[-1]
    return found


def help_of(capsys, *words):
    """Return the text that help prints."""
    with pytest.raises(SystemExit) as end:
        main([*words])
    out, err = capsys.readouterr()
    assert (end.value.code, err) == (0, "")
    return out


def listed(text):
    """Return the last name of each option that a help text explains."""
    heads = re.findall(r"^  (-.*?)(?:  |$)", text, re.M)
    return {re.findall(r"--[\w-]+", head)[-1] for head in heads if "--help" not in head}


@pytest.mark.parametrize("name", LARGE)
def test_first_a_dozen_options(name, capsys, options):
    """Help first lists at most 15 common and required options, examples and groups."""
    text, (known, required) = help_of(capsys, name, "--help"), options[name]
    first = {*required.values()} | {known[dest] for dest in known.keys() & COMMON}
    assert listed(text) == first
    assert len(first) <= 15
    assert text.count(f"\n  torusfabric {name} ") == len(COMMANDS[name].examples) == 3
    groups = re.findall(r"^  --help (\w+) +(.+)", text, re.M)
    assert groups[-1] == ("all", "every option")
    assert "\n\nexamples:\n" in text.partition("\n\nmore options:\n")[0]


@pytest.mark.parametrize("name", LARGE)
def test_groups_have_all_options(name, capsys, options):
    """The groups together have all options of `--help all`.

    A group without a line lists its options.
    """
    groups = re.findall(r"^  --help (\w+) +(.+)", help_of(capsys, name, "-h"), re.M)[:-1]
    parts = {word: listed(help_of(capsys, name, "-h", word)) for word, _ in groups}
    every = listed(help_of(capsys, name, "--help=all"))
    assert every == {each for part in options[name] for each in part.values()}
    hidden = every - listed(help_of(capsys, name, "-h"))
    assert hidden <= set.union(*parts.values()) <= every
    for word, line in groups:
        assert line == GROUPS.get(word, ", ".join(re.findall(r"--[\w-]+", line)))


@pytest.mark.parametrize("name", ["load", "doctor", "import", "sweep"])
def test_few_options_are_shown_at_once(name, capsys, options):
    """A command with few options shows all of them at once."""
    text = help_of(capsys, name, "--help")
    assert listed(text) == {each for part in options[name] for each in part.values()}
    assert "more options" not in text
    assert text == help_of(capsys, name, "--help", "all")


def test_a_group_of_an_adapter(capsys):
    """The options of an adapter are a group of their own."""
    assert help_of(capsys, "verilog", "--help", "boards").startswith("several boards:\n  --boards ")


def test_what_is_common_is_there(options):
    """Each option that is marked as common exists, and each line describes an existing group."""
    known = {dest for parts in options.values() for part in parts for dest in part}
    assert known >= COMMON
    titles = {action.container.title for _, action in command_actions(make_parser())}
    assert {title.split()[-1].lower() for title in titles} >= GROUPS.keys()


@pytest.mark.parametrize(
    "line", [line for command in COMMANDS.values() for line in command.examples]
)
def test_examples_are_commands(line):
    """The examples in the help are valid commands."""
    words = shlex.split(re.sub(r" > .*|^\w+=\w+ ", "", line))
    assert words[0] == "torusfabric"
    arguments = make_parser(complete=False).parse_args(words[1:])
    assert COMMANDS[arguments.command].examples.count(line) == 1


@pytest.mark.parametrize(("line", "place"), [
    ("verilog 2 allgather -o out --phy", "verilog --help boards"),
    ("verilog 2 allgather -o out --timeout x", "verilog --help ports"),
    ("verilog 2 allgather -o out --rows 0", "verilog --help tables"),
    ("verilog 2 allgather -o out --seed= ", "verilog --help selection"),
    ("verilog 2 allgather -o out --width x", "verilog --help"),
    ("verilog 2 allgather -o out -o out", "verilog --help"),
    ("verilog 2 allgather -o out --flow=", "verilog --help files"),
    ("verilog 2 allgather -o out --nothing", "verilog --help all"),
    ("verilog 2 allgather", "verilog --help"),
    ("verilog", "verilog --help"),
    ("load a.bin --baud x", "load --help"),
    ("load a.bin --nothing", "load --help"),
    ("simulate 2 allgather --quiet=1", "simulate --help options"),
])  # fmt: skip
def test_an_error_leads_to_the_option(line, place, capsys):
    """The message about an option names the help that explains the option."""
    status, out, err = run_command(capsys, *line.split(" "))
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.endswith(f" (see torusfabric {place})\n")


def test_a_group_that_there_is_not(capsys):
    """An unknown group of help is refused, with a suggestion."""
    status, out, err = run_command(capsys, "synth", "--help", "prots")
    assert (status, out) == (1, "")
    assert err.startswith("torusfabric: Help must be one of options, selection, hardware, ports, ")
    assert "did you mean ports?" in err
