"""The program ``torusfabric``, also started by ``python -m torusfabric``."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run a command, and return its exit status.

    Importing the commands takes time, and an interrupt in that time ends the program too.
    """
    try:
        from .cli import main as run
    except KeyboardInterrupt:
        print("torusfabric: interrupted", file=sys.stderr)
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
