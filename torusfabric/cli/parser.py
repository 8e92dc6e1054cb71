"""The parser of command lines: argparse, with our errors, help by topic, and late imports.

`add_command` registers the function of a command, `add_adapter_options` the options that adapters
declare. The help of a command with many options shows the most needed ones and lists groups of the
others, which ``--help GROUP`` shows.
"""

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
from ..toolchain.values import suggest_name, unknown_name_error
from .output import print_line
from .purposes import COMMON, GROUPS, PURPOSES

__all__ = ["CommandParser", "Commands", "CommandHelpFormatter", "Parser", "add_adapter_options",
           "add_command", "changed_names"]  # fmt: skip

#: The parsers of all commands, by name.
Commands: TypeAlias = Mapping[str, ArgumentParser]

#: A word that begins with a minus sign but is a value, not an option.
_NEGATIVE = re.compile(r"-\.?[0-9].*")


#: Most arguments of a command whose help shows all of them.
MOST_OPTIONS = 16


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `InputError`, with a suggestion for a misspelt option."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # argparse recognises negative numbers by this pattern. With its own pattern it would drop
        # -4x4 as an unknown option and take the next word for the topology.
        self._negative_number_matcher = _NEGATIVE
        #: Options of other commands, each with the names of the commands that have it.
        self.elsewhere: dict[str, str] = {}
        self._words: list[str] = []
        self._given: set[argparse.Action] = set()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse words; an unknown option is reported before a missing argument.

        Parameters
        ----------
        args : sequence of str, optional
            The words to parse; by default those of this process.
        namespace : Namespace, optional
            Object that gets the arguments; by default a new one.
        """
        self._words = sys.argv[1:] if args is None else list(args)
        self._given = set()
        found, unknown = super().parse_known_args(args, namespace)
        self._refuse_unknown(unknown)
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Raise an error with the text of argparse, `message`, and a hint at the help."""
        if message.startswith("the following arguments are required"):
            self._refuse_unknown(self._words)
        option = re.search(r"--[\w-]+", message)
        topic = self.help_topic(option[0]) if option else ""
        message = re.sub(r"^argument (.*?): must be", r"\1 must be", message)
        raise InputError(f"{message[:1].upper()}{message[1:]} (see {self.prog} --help{topic})")

    def help_topic(self, option: str) -> str:
        """Return the word to append to ``--help`` to see an option.

        It is empty here, because plain ``--help`` of this parser shows all options. `CommandParser`
        has groups of options.
        """
        return ""

    def _print_message(self, message: str, file: object = None) -> None:
        """Print `message`, the help or the version.

        An error of standard output is raised, which argparse would ignore. `file` has no effect.
        """
        print_line(message.rstrip("\n"))

    def changed_arguments(self, arguments: Namespace) -> Iterator[tuple[str, str]]:
        """Yield a pair for each argument that differs from its default: ("width", "--width").

        The first is the attribute of `arguments`. The second is the option, or for an argument
        without an option a word in capital letters.
        """
        for action in self._actions:
            if getattr(arguments, action.dest, action.default) != action.default:
                names = [name for name in action.option_strings if name.startswith("--")]
                yield action.dest, names[0] if names else str(action.metavar)

    def command_words(self, arguments: Namespace, decided: Mapping[str, object]) -> Iterator[str]:
        """Yield the words of a command line that gives these arguments, such as "--width", "32".

        Parameters
        ----------
        arguments : Namespace
            Parsed arguments; those with default values are left out.
        decided : dict of str to object
            Values that replace or complete the arguments, by their attributes. An argument with
            the value None is left out.
        """
        given = {name: getattr(arguments, name) for name, _ in self.changed_arguments(arguments)}
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

    def check_options(self, arguments: Namespace) -> None:
        """Raise an error for an option that lacks another option, or that an adapter excludes."""
        from ..fabric.adapter_access import select_adapter  # here, because help needs no adapters

        names = dict(self.changed_arguments(arguments))
        texts = ((names[each.dest], each.help) for each in self._actions if each.dest in names)
        check_needs(texts, vars(arguments))
        select_adapter(self.prog.rpartition(" ")[2], names)

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
                        f"{self.prog.rpartition(' ')[2]} has no option {name}; it is for "
                        f"{self.elsewhere[name]}"
                    )
                names = {option.lstrip("-"): option for option in known}
                self.error(f"unrecognized arguments: {name}{suggest_name(name.lstrip('-'), names)}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Read the values of an argument; an empty or a repeated one is an error.

        `action` is the declaration of the argument, and `arg_strings` are the words of its values.

        Why: an unset shell variable leaves an empty value. If it counted as no value, the command
        would silently do something else.
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
        """Raise an error if `value` is not one of the values that its argument allows.

        `action` is the declaration of the argument.
        """
        if action.choices is not None and value not in action.choices:
            name = action.option_strings[-1] if action.option_strings else str(action.metavar)
            raise unknown_name_error(
                name.capitalize() if name.isupper() else name, value, action.choices
            )


def _may_be_repeated(action: argparse.Action) -> bool:
    """Return True if the argument that `action` declares may be repeated.

    This holds for an option without a value, and for an option that collects its values in a list.
    """
    return action.nargs == 0 or isinstance(action, argparse._AppendAction)  # noqa: SLF001


class CommandParser(Parser):
    """The parser of one command, which gets its arguments only when it parses.

    Why: the modules that know the arguments are imported late, so that other commands need not
    wait.

    Parameters
    ----------
    complete : function of () -> None
        Function that adds the arguments to this parser.
    """

    def __init__(self, *args: Any, complete: Callable[[], None], **kwargs: Any) -> None:
        super().__init__(*args, add_help=False, **kwargs)
        self._complete = complete
        text = (
            "Show the options that most people need, those of a group, or with `all` every option."
        )
        how: dict[str, Any] = {"metavar": "GROUP", "nargs": "?", "default": argparse.SUPPRESS}
        self.add_argument("-h", "--help", action=HelpAction, help=text, **how)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the arguments of the command, parse, and check the options that need each other.

        Parameters
        ----------
        args : sequence of str, optional
            The words after the name of the command.
        namespace : Namespace, optional
            Object that gets the arguments; by default a new one.
        """
        self._complete()
        found, unknown = super().parse_known_args(args, namespace)
        self.check_options(found)
        return found, unknown

    def add_argument_group(self, *args: Any, **kwargs: Any) -> Any:
        """Return the group of options with the given title, and make it if there is none."""
        known = {group.title: group for group in self._action_groups}
        return known.get(args[0]) or super().add_argument_group(*args, **kwargs)

    def help_text(self, topic: str | None) -> str:
        """Return the text of the help.

        Parameters
        ----------
        topic : str or None
            The word of a group of options, ``"all"``, or None for the options that most people
            need.

        Raises
        ------
        InputError
            If there is no such group.
        """
        later, groups = self._hidden_options(), dict[str, list[argparse.Action]]()
        if topic == "all" or (topic is None and not later):
            return self.format_help()
        for action in self._actions:
            if action.option_strings:
                groups.setdefault(_group_word(action), []).append(action)
        if topic not in (None, *groups):
            raise unknown_name_error("Help", topic, [*groups, "all"])
        formatter = self._get_formatter()
        if topic is not None:
            _add_section(formatter, _group_title(groups[topic][0]), groups[topic])
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
        for word in dict.fromkeys(map(_group_word, later)):
            names = (each.option_strings[-1] for each in groups[word] if each in later)
            lines.append(f"  --help {word:<10} {GROUPS.get(word) or ', '.join(names)}")
        formatter.add_text("\n".join([*lines, "  --help all        every option"]))
        return formatter.format_help()

    def help_topic(self, option: str) -> str:
        """Return the word to append to ``--help`` so that the help shows an option.

        The text begins with a space: a group of options such as `` ports``, or `` all`` for an
        option that this parser does not have. It is empty if the help shows the option without a
        word.
        """
        action, later = self._option_string_actions.get(option), self._hidden_options()
        if action is None:
            return " all" if later else ""
        return f" {_group_word(action)}" if action in later else ""

    def _hidden_options(self) -> list[argparse.Action]:
        """Return the options that plain ``--help`` leaves out, and ``--help GROUP`` shows."""
        if len(self._actions) <= MOST_OPTIONS:
            return []
        options = (action for action in self._actions if action.option_strings)
        return [each for each in options if not each.required and each.dest not in COMMON]


def _group_title(action: argparse.Action) -> str:
    """Return the title of the group of the option that `action` declares."""
    title: str = action.container.title  # type: ignore[attr-defined]
    return title


def _group_word(action: argparse.Action) -> str:
    """Return the word by which ``--help WORD`` shows the group of an option: the last of its title.

    `action` declares the option.
    """
    return _group_title(action).split()[-1].lower()


def _add_section(
    formatter: argparse.HelpFormatter, title: str, actions: list[argparse.Action]
) -> None:
    """Add arguments under a title to a help text.

    `formatter` collects the help text, and each of `actions` declares an argument.
    """
    formatter.start_section(title)
    formatter.add_arguments(actions)
    formatter.end_section()


class HelpAction(argparse.Action):
    """The action of ``--help``: print the help of a group of options, and exit."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        """Print the help, and exit.

        Parameters
        ----------
        parser : Parser
            The parser of the command.
        namespace : Namespace
            The arguments so far; without effect.
        values : str or None
            The word after ``--help``, which names a group of options.
        option : str, optional
            The option as the user wrote it; without effect.
        """
        print_line(parser.help_text(values).rstrip("\n"))
        parser.exit()


class CommandHelpFormatter(argparse.RawDescriptionHelpFormatter):
    """A help formatter that lists commands by their purposes."""

    def _format_action(self, action: argparse.Action) -> str:
        """Return the help of an argument; for COMMAND, a list of all commands by purpose.

        `action` is the declaration of the argument.
        """
        if action.nargs != argparse.PARSER:
            return super()._format_action(action)
        entries = {entry.dest: entry for entry in self._iter_indented_subactions(action)}
        parts = []
        for purpose, names in PURPOSES.items():
            lines = [
                super(CommandHelpFormatter, self)._format_action(entries[name]) for name in names
            ]
            parts.append(f"{purpose}:\n" + "".join(lines))
        return "\n" + "\n".join(parts)


def add_command(
    commands: Commands, name: str, run: Callable[[Namespace], int | None]
) -> ArgumentParser:
    """Register the function of a command, and add the arguments that all commands have.

    Parameters
    ----------
    commands : dict of str to ArgumentParser
        The parsers of all commands.
    name : str
        Name of the command.
    run : function of (Namespace) -> int or None
        Runs the command with its arguments, and returns its exit status; None counts as 0.

    Returns
    -------
    ArgumentParser
        The parser of the command, for further arguments.
    """
    parser = commands[name]
    add_options(parser, "--json: Print one JSON object and nothing else on standard output.\n")
    text = """
        --quiet: Print only errors on standard error.
        --verbose: Print on standard error how long each part took, and how long some may take.
        """
    add_options(parser.add_mutually_exclusive_group(), text)

    def run_at_level(arguments: Namespace) -> int | None:
        level = logging.DEBUG if arguments.verbose else logging.INFO
        LOGGER.setLevel(logging.ERROR if arguments.quiet else level)
        return run(arguments)

    parser.set_defaults(run=run_at_level, parser=parser)
    return parser


def add_adapter_options(parser: Parser, command: str) -> None:
    """Add the options that adapters (such as streams or boards) have for a command.

    An adapter may have options for other commands only. Then `parser.elsewhere` gets an entry: the
    option of the adapter -> the names of these commands. A user who gives the option here is told
    where it belongs.
    """
    from ..fabric.adapter_access import options_by_adapter

    for adapter, every in options_by_adapter(command):
        if not every:
            served = {name: None for options in adapter.options for name in options.commands}
            parser.elsewhere[f"--{adapter.name}"] = ", ".join(served)
            continue
        group = parser.add_argument_group(adapter.title)
        for options in every:
            add_options(group, options.text, **options.settings)


def changed_names(arguments: Namespace, *attributes: str) -> Iterator[str]:
    """Yield the names of the arguments that differ from their defaults, such as "--width".

    Parameters
    ----------
    arguments : Namespace
        Arguments of any command.
    *attributes : str
        Arguments to leave out, by their attributes. ``--json``, ``--quiet`` and ``--verbose`` are
        always left out.
    """
    usual = ("json", "quiet", "verbose", *attributes)
    given: Iterator[tuple[str, str]] = arguments.parser.changed_arguments(arguments)
    return (name for attribute, name in given if attribute not in usual)
