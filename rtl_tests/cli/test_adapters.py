# ruff: noqa: SLF001  argparse has no public way to look at a parser
"""Adapters: the parts of the protocol are there, and so are the options that they speak of."""

import argparse
import re

import pytest

from torusfabric.adapters import ADAPTERS
from torusfabric.cli import make_parser
from torusfabric.cli.arguments import option_names
from torusfabric.contract import adapter as protocol
from torusfabric.fabric.adapted import chosen_adapter

#: The functions of each part, as the table of the protocol has them.
FUNCTIONS = [(part.strip(), function) for part, function in
             re.findall(r"^(\w+| {8}) +(\w+)\(", protocol.__doc__ or "", re.M)]  # fmt: skip

EACH = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.title)


def commands():
    """The attributes of the options of each command."""
    (found,) = (
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return {name: {action.dest for action in parser._actions}
            for name, parser in found.choices.items()}  # fmt: skip


@EACH
def test_parts_have_the_functions_of_the_protocol(adapter):
    part = ""
    assert len(FUNCTIONS) > 8
    for name, function in FUNCTIONS:
        part = name or part
        assert callable(getattr(adapter.part(part), function)), (part, function)


@EACH
def test_options_are_those_of_their_commands(adapter):
    """Each is there where it is declared, and so is each that has no meaning with the adapter."""
    known, first = commands(), adapter.options[0]
    for options in adapter.options:
        assert {*options.commands} <= {*first.commands} <= {*known}
        names = {name.strip("-").replace("-", "_") for name in option_names(options.text)}
        assert {*options.values} <= names
        assert all(names <= known[command] for command in options.commands)
    assert "" in adapter.excluded
    for command, names in adapter.excluded.items():
        every = known[command] if command else set.union(*(known[name] for name in first.commands))
        assert {*names} <= every


@EACH
def test_an_adapter_is_chosen_by_its_name(adapter):
    command = adapter.options[0].commands[0]
    assert chosen_adapter(command, [adapter.name]) is adapter
    assert chosen_adapter(command, ["width"]) is None
