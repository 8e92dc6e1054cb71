"""The program ``torusfabric``, which is ``python -m torusfabric`` too."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run a command; returns the exit status. An interrupt may come while it is being loaded."""
    try:
        from .cli import main as run
    except KeyboardInterrupt:
        print("torusfabric: interrupted", file=sys.stderr)
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
