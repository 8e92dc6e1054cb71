"""How every command is added to the command line."""

__all__ = ["add_command"]


def add_command(commands, name, run, text, example):
    """Add a command.

    Parameters
    ----------
    commands : what `add_subparsers` returns
    name : str
    run : function of (Namespace) -> int or None
        Does the work; returns the exit status.
    text : str
        What it does, in a few words.
    example : str
        A command line, for the help text.

    Returns
    -------
    ArgumentParser
    """
    parser = commands.add_parser(
        name, help=text, description=text.capitalize() + ".", epilog=f"example: {example}"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )
    parser.set_defaults(run=run)
    return parser
