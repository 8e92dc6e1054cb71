"""The command that shows and clears the cache."""

from argparse import Namespace

from .output import print_facts, print_json
from .parser import Commands, add_command

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the command to a parser."""
    parser = add_command(commands, "cache", run_cache)
    parser.add_argument(
        "--clear", action="store_true", help="remove all entries; what is needed is made again"
    )


def run_cache(arguments: Namespace) -> None:
    """Show what the cache holds, or remove it."""
    from rich.filesize import decimal

    from ..toolchain.cache import default_folder
    from ..toolchain.cache_size import LIMIT_VARIABLE, clear, size_limit, usage

    folder, limit = default_folder(), size_limit()
    removed = clear(folder) if arguments.clear else None
    found = usage(folder)
    if arguments.json:
        facts = {"folder": str(folder), **found._asdict(), "limit": limit}
        print_json(facts | ({"removed": removed._asdict()} if removed else {}))
        return
    facts = {
        "folder": f"{folder} (TORUSFABRIC_CACHE names another)",
        "entries": found.entries,
        "size": decimal(found.bytes),
        "limit": f"{decimal(limit)} ({LIMIT_VARIABLE} sets another)",
    }
    if removed:
        facts["removed"] = f"{removed.entries} entries, {decimal(removed.bytes)}"
    print_facts(facts)
