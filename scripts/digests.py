"""Print the digest of each file that some commands write: equal in every version of Python.

``python scripts/digests.py`` runs a range of commands in this Python. ``bash scripts/versions``
compares the digests of the oldest and the newest Python that are found.
"""

import contextlib
import hashlib
import io
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.fpga.board import find_board
from torusfabric.fpga.board.plan import plan_build

#: Commands that write files: each top, each bus, engines, each kind of schedule file.
COMMANDS = """\
plan 4x4 alltoall -o plan.json
plan arrowhead:2 broadcast -o plan.json
plan 6x6 reduce-scatter -o plan.json.gz
export 4x4 allgather -o plan.xml
draw 4x4 allgather -o picture.svg
animate 4x4 alltoall -o page.html
simulate 4x4 allgather --width 8 --trace trace.jsonl
verilog 4x4 allgather -o .
verilog 4x4 allgather --bus axi-lite -o .
verilog 3x3 alltoall --bus wishbone --max-flits 4 -o .
verilog 4x4 allgather,alltoall,allreduce --max-flits 4 --op add,max -o .
verilog 4x4 broadcast --root any --max-flits 8 -o .
verilog arrowhead:2 broadcast -o .
verilog 4x4 reduce-scatter --prefix one_ -o .
verilog 4x4 allgather --top core -o .
verilog 4x4 alltoall --top core -o .
verilog 3x3 scatter,allgather,barrier --top stream --max-flits 4 -o .
verilog 3x3 allreduce --top stream --clocks per-node -o .
"""

HOME = Path.cwd()

#: Boards for which the inputs of the synthesis tools are compared. Why not bitstreams: the tools
#: make equal bitstreams of equal inputs.
BOARDS = ("icebreaker", "ulx3s-25f")


def written_files() -> Iterator[tuple[str, bytes]]:
    """Yield the name of each command and file, and the content of the file."""
    for command in COMMANDS.splitlines():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            with contextlib.redirect_stdout(io.StringIO()):
                status = main([*shlex.split(command), "--quiet"])
            if status:
                raise SystemExit(f"torusfabric {command}: exit status {status}")
            for path in sorted(Path().rglob("*")):
                if path.is_file():
                    yield f"{command}: {path.as_posix()}", path.read_bytes()
            os.chdir(HOME)
    fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather"), max_flits=4), width=8)
    for board in BOARDS:
        plan, _ = plan_build(fabric, find_board(board))
        for name, content in sorted(plan.files.items()):
            data = content.encode() if isinstance(content, str) else content
            yield f"build {board}: {name}", data


if __name__ == "__main__":
    for name, content in written_files():
        print(hashlib.sha256(content).hexdigest(), name)
