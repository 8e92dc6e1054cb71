"""The parser of command lines: argparse, with errors that name what is at fault."""

import argparse
import logging
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from ..contract.options import add_options, check_needs
from ..errors import InputError
from ..toolchain.notices import LOGGER
from ..toolchain.values import hint, no_such
from .output import print_line
from .purposes import COMMON, GROUPS, PURPOSES

__all__ = ["CommandParser", "Commands", "Help", "Parser", "add_adapter_options", "add_command",
           "given_beside"]  # fmt: skip

#: The parsers of all commands, by name.
Commands: TypeAlias = Mapping[str, ArgumentParser]

#: What follows a minus sign like this is no option, but a value that is out of range.
_NEGATIVE = re.compile(r"-\.?[0-9].*")


#: The most arguments of a command whose help shows all of them at once.
MOST_AT_ONCE = 16


class Parser(argparse.ArgumentParser):
    """A parser whose errors are ours, and say what the user probably meant."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # By this argparse recognises negative numbers; else it drops -4x4 as an unknown option
        # and takes what follows for the topology.
        self._negative_number_matcher = _NEGATIVE
        #: Options that this command has not, with the names of the commands that have them.
        self.elsewhere: dict[str, str] = {}
        self._words: list[str] = []
        self._given: set[argparse.Action] = set()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; what is not known is named before what is missing."""
        self._words = sys.argv[1:] if args is None else list(args)
        self._given = set()
        found, unknown = super().parse_known_args(args, namespace)
        self._refuse_unknown(unknown)
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print."""
        if message.startswith("the following arguments are required"):
            self._refuse_unknown(self._words)
        option = re.search(r"--[\w-]+", message)
        topic = self.topic_of(option[0]) if option else ""
        message = re.sub(r"^argument (.*?): must be", r"\1 must be", message)
        raise InputError(f"{message[:1].upper()}{message[1:]} (see {self.prog} --help{topic})")

    def topic_of(self, option: str) -> str:
        """Return the words behind ``--help`` for the help that shows an option."""
        return ""

    def _print_message(self, message: str, file: object = None) -> None:
        """Print help or version; argparse would not say that it cannot be written."""
        print_line(message.rstrip("\n"))

    def given(self, arguments: Namespace) -> Iterator[tuple[str, str]]:
        """The attribute and the name of each argument that differs from its default."""
        for action in self._actions:
            if getattr(arguments, action.dest, action.default) != action.default:
                names = [name for name in action.option_strings if name.startswith("--")]
                yield action.dest, names[0] if names else str(action.metavar)

    def words(self, arguments: Namespace, decided: Mapping[str, object]) -> Iterator[str]:
        """The words by which a command line gives the arguments, and what was decided, in turn.

        Parameters
        ----------
        decided : dict of str to object
            Values in place of those of arguments, by their attributes; None leaves one out.
        """
        given = {name: getattr(arguments, name) for name, _ in self.given(arguments)}
        values = {**given, **decided}
        for action in self._actions:
            value = values.get(action.dest)
            if value is None or value is False:
                continue
            name = [option for option in action.option_strings if option.startswith("--")][:1]
            yield from name
            if action.nargs != 0:
                for each in value if isinstance(value, list | tuple) else [value]:
                    yield f"{each:.12g}" if isinstance(each, float) else str(each)

    def check_given(self, arguments: Namespace) -> None:
        """Refuse an option without the one that it needs, and one that an adapter rules out."""
        from ..fabric.adapted import chosen_adapter  # here, as the help of all commands needs none

        names = dict(self.given(arguments))
        texts = ((names[each.dest], each.help) for each in self._actions if each.dest in names)
        check_needs(texts, vars(arguments))
        chosen_adapter(self.prog.rpartition(" ")[2], names)

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        """Raise an error if some words are options that this parser does not have."""
        for word in words:
            if word == "--":
                return
            name = word.partition("=")[0]
            if not name.startswith("-") or name == "-" or _NEGATIVE.match(name):
                continue
            known = self._option_string_actions
            if name.startswith("--"):
                is_known = any(option.startswith(name) for option in known)
            else:
                is_known = name[:2] in known
            if not is_known:
                if name in self.elsewhere:
                    raise InputError(
                        f"{name} must be left out for {self.prog.rpartition(' ')[2]}; "
                        f"it is for {self.elsewhere[name]}"
                    )
                names = {option.lstrip("-"): option for option in known}
                self.error(f"unrecognized arguments: {name}{hint(name.lstrip('-'), names)}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Read the values of an argument: none is empty, and none replaces one given before.

        Why: a shell variable that is not set leaves an empty value, which read as "left out" would
        do something else without a word.
        """
        name = "/".join(action.option_strings) or str(action.metavar)
        own = arg_strings[:1] if action.nargs == argparse.PARSER else arg_strings
        if not all(map(str.strip, own)):
            self.error(f"{name} must have a value, not an empty one")
        if action in self._given and not _may_be_repeated(action):
            self.error(f"{name} must be given once, not several times")
        if action.option_strings:
            self._given.add(action)
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is none of an option's choices."""
        if action.choices is not None and value not in action.choices:
            name = action.option_strings[-1] if action.option_strings else str(action.metavar)
            raise no_such(name.capitalize() if name.isupper() else name, value, action.choices)


def _may_be_repeated(action: argparse.Action) -> bool:
    """True if an option collects its values, or has none and says the same again."""
    return action.nargs == 0 or isinstance(action, argparse._AppendAction)  # noqa: SLF001


class CommandParser(Parser):
    """A parser that has its arguments only once it parses: what adds them takes long to import."""

    def __init__(self, *args: Any, complete: Callable[[], None], **kwargs: Any) -> None:
        super().__init__(*args, add_help=False, **kwargs)
        self._complete = complete
        text = "show the options that most people need, those of a group, or with `all` every one"
        how: dict[str, Any] = {"metavar": "GROUP", "nargs": "?", "default": argparse.SUPPRESS}
        self.add_argument("-h", "--help", action=HelpAction, help=text, **how)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the arguments, and parse."""
        self._complete()
        found, unknown = super().parse_known_args(args, namespace)
        self.check_given(found)
        return found, unknown

    def add_argument_group(self, *args: Any, **kwargs: Any) -> Any:
        """Return the group of a title, which is made when it is first asked for."""
        known = {group.title: group for group in self._action_groups}
        return known.get(args[0]) or super().add_argument_group(*args, **kwargs)

    def help_of(self, topic: str | None) -> str:
        """Return the help of a group; by default that of the options that most people need.

        Raises
        ------
        InputError
            If there is no such group.
        """
        later, groups = self._shown_later(), dict[str, list[argparse.Action]]()
        if topic == "all" or (topic is None and not later):
            return self.format_help()
        for action in self._actions:
            if action.option_strings:
                groups.setdefault(_word(action), []).append(action)
        if topic not in (None, *groups):
            raise no_such("Help", topic, [*groups, "all"])
        formatter = self._get_formatter()
        if topic is not None:
            _add_section(formatter, _title(groups[topic][0]), groups[topic])
            return formatter.format_help()
        first = [action for action in self._actions if action not in later]
        named = [action for action in first if action.option_strings]
        arguments = [action for action in first if action not in named]
        formatter.add_usage(None, [*filter(lambda each: each.required, named), *arguments], [])
        formatter.add_text(self.description)
        _add_section(formatter, "arguments", arguments)
        _add_section(formatter, "options that most people need", named)
        formatter.add_text(self.epilog)
        lines = ["more options:"]
        for word in dict.fromkeys(map(_word, later)):
            names = (each.option_strings[-1] for each in groups[word] if each in later)
            lines.append(f"  --help {word:<10} {GROUPS.get(word) or ', '.join(names)}")
        formatter.add_text("\n".join([*lines, "  --help all        every option"]))
        return formatter.format_help()

    def topic_of(self, option: str) -> str:
        """Return the words behind ``--help`` for the help that shows an option."""
        action, later = self._option_string_actions.get(option), self._shown_later()
        if action is None:
            return " all" if later else ""
        return f" {_word(action)}" if action in later else ""

    def _shown_later(self) -> list[argparse.Action]:
        """Return the options that the help shows only if it is asked for their groups."""
        if len(self._actions) <= MOST_AT_ONCE:
            return []
        options = (action for action in self._actions if action.option_strings)
        return [each for each in options if not each.required and each.dest not in COMMON]


def _title(action: argparse.Action) -> str:
    """Return the title of the group of an option."""
    title: str = action.container.title  # type: ignore[attr-defined]
    return title


def _word(action: argparse.Action) -> str:
    """Return the word by which help is asked for the group of an option."""
    return _title(action).split()[-1].lower()


def _add_section(
    formatter: argparse.HelpFormatter, title: str, actions: list[argparse.Action]
) -> None:
    """Add arguments under a title."""
    formatter.start_section(title)
    formatter.add_arguments(actions)
    formatter.end_section()


class HelpAction(argparse.Action):
    """Prints the help of a group, and ends."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        """Print."""
        print_line(parser.help_of(values).rstrip("\n"))
        parser.exit()


class Help(argparse.RawDescriptionHelpFormatter):
    """Help in which commands stand below what they are for."""

    def _format_action(self, action: argparse.Action) -> str:
        """The lines of an argument: those of the commands by purpose."""
        if action.nargs != argparse.PARSER:
            return super()._format_action(action)
        entries = {entry.dest: entry for entry in self._iter_indented_subactions(action)}
        parts = []
        for purpose, names in PURPOSES.items():
            lines = [super(Help, self)._format_action(entries[name]) for name in names]
            parts.append(f"{purpose}:\n" + "".join(lines))
        return "\n" + "\n".join(parts)


def add_command(
    commands: Commands, name: str, run: Callable[[Namespace], int | None]
) -> ArgumentParser:
    """Give a command what runs it, with an exit status, and the arguments that all commands have.

    Returns its parser, to which the module adds more.
    """
    parser = commands[name]
    add_options(parser, "--json: print one JSON object and nothing else\n")
    text = """
        --quiet: say nothing on standard error but errors
        --verbose: say on standard error how long each part took, and how long some may take
        """
    add_options(parser.add_mutually_exclusive_group(), text)

    def run_at_level(arguments: Namespace) -> int | None:
        level = logging.DEBUG if arguments.verbose else logging.INFO
        LOGGER.setLevel(logging.ERROR if arguments.quiet else level)
        return run(arguments)

    parser.set_defaults(run=run_at_level, parser=parser)
    return parser


def add_adapter_options(parser: Parser, command: str) -> None:
    """Add the options that adapters declare for a command, or say which commands have them."""
    from ..fabric.adapted import adapter_options

    for adapter, every in adapter_options(command):
        if not every:
            served = {name: None for options in adapter.options for name in options.commands}
            parser.elsewhere[f"--{adapter.name}"] = ", ".join(served)
            continue
        group = parser.add_argument_group(adapter.title)
        for options in every:
            add_options(group, options.text, **options.settings)


def given_beside(arguments: Namespace, *attributes: str) -> Iterator[str]:
    """The names of all arguments that differ from their defaults, but for some."""
    usual = ("json", "quiet", "verbose", *attributes)
    given: Iterator[tuple[str, str]] = arguments.parser.given(arguments)
    return (name for attribute, name in given if attribute not in usual)
