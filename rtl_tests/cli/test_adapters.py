# ruff: noqa: SLF001  argparse has no public way to look at a parser
"""Adapters have the functions of the protocol, and commands have the options of adapters."""

import argparse
import inspect
import re

import apb.options
import pytest

from torusfabric.adapters import ADAPTERS
from torusfabric.cli import make_parser
from torusfabric.contract import adapter as protocol
from torusfabric.contract.options import option_names
from torusfabric.errors import InputError
from torusfabric.fabric import adapter_access
from torusfabric.fabric.adapter_access import select_adapter

#: Functions of each part with their parameters, as the table of the protocol lists them.
FUNCTIONS = [
    (part.strip(), function, parameters.split(", "))
    for part, function, parameters in re.findall(
        r"^(\w+| {8}) +(\w+)\((.*?)\)", protocol.__doc__ or "", re.M
    )
]

#: The part that each command needs beside `make`. Commands about boards need `bridge`.
NEEDED = {"verilog": "files", "simulate": "drive", "prove": "claims"}

EACH = pytest.mark.parametrize(
    "adapter", [*ADAPTERS, apb.options.ADAPTER], ids=lambda adapter: adapter.title
)


@pytest.fixture(autouse=True)
def with_apb(monkeypatch):
    """Add the adapter of the recipe to the list of adapters."""
    monkeypatch.setattr(adapter_access, "ADAPTERS", (*ADAPTERS, apb.options.ADAPTER))


def commands():
    """Return the attributes of the options of each command."""
    (found,) = (
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return {name: {action.dest for action in parser._actions}
            for name, parser in found.choices.items()}  # fmt: skip


@EACH
def test_parts_have_the_functions_of_the_protocol(adapter):
    """Each part of an adapter has the functions of the protocol, which accept its parameters."""
    commands = {command for options in adapter.options for command in options.commands}
    needed = {"make"} | {NEEDED.get(command, "bridge") for command in commands}
    part = ""
    assert len(FUNCTIONS) > 8
    for name, function, parameters in FUNCTIONS:
        part = name or part
        if part in needed:
            found = getattr(adapter.import_part(part), function)
            inspect.signature(found).bind_partial(**dict.fromkeys(parameters))


@EACH
def test_options_are_those_of_their_commands(adapter):
    """Each declared or excluded option of an adapter is an option of the stated commands."""
    known, first = commands(), adapter.options[0]
    for options in adapter.options:
        assert {*options.commands} <= {*first.commands} <= {*known}
        names = {name.strip("-").replace("-", "_") for name in option_names(options.text)}
        assert {*options.settings} <= names
        assert all(names <= known[command] for command in options.commands)
    assert "" in adapter.excluded
    for command, names in adapter.excluded.items():
        every = known[command] if command else set.union(*(known[name] for name in first.commands))
        assert {*names} <= every


@EACH
def test_an_adapter_is_chosen_by_its_name(adapter):
    """An adapter is selected by its name."""
    command = adapter.options[0].commands[0]
    assert select_adapter(command, [adapter.name]) is adapter
    assert select_adapter(command, ["width"]) is None


def test_two_adapters_exclude_each_other():
    """Two adapters exclude each other."""
    with pytest.raises(InputError, match=r"^--apb and --boards exclude each other; leave"):
        select_adapter("verilog", ["apb", "boards"])
