"""Files of waves in the format FST, by GTKWave's own tool."""

import contextlib
import shutil
import struct
from pathlib import Path

from ...errors import WorkFailed
from ...toolchain import tools
from ...toolchain.folders import work_folder

__all__ = ["convert", "is_whole"]

#: The types of blocks: the header, the widths of signals, and, compressed in one of three ways,
#: their names.
_HEADER, _GEOMETRY, _HIERARCHY = 0, 3, {4, 6, 7}


def convert(path: Path) -> None:
    """Turn a file in the format VCD into one in FST.

    Raises
    ------
    WorkFailed
        If the tool fails, or cannot write all.
    """
    with work_folder("waves") as folder:
        args = [str(path.absolute()), "waves.fst"]
        tools.run("vcd2fst", args, folder=folder, log="log", what="the waves",
                  makes=["waves.fst"])  # fmt: skip
        if not is_whole(folder / "waves.fst"):
            raise WorkFailed(
                f"vcd2fst failed on the waves: it could not write all to {folder.parent} (is that "
                "disk full? TMPDIR names another folder)"
            )
        shutil.copyfile(folder / "waves.fst", path)


def is_whole(path: Path) -> bool:
    """Whether the blocks of a file are all there; vcd2fst does not notice if it cannot write.

    A block is a byte for its type, its length without that byte in eight bytes, and the content.
    """
    found = set()
    with open(path, "rb") as file, contextlib.suppress(struct.error):
        size = file.seek(0, 2)
        at = file.seek(0)
        while at < size:
            kind, length = struct.unpack(">BQ", file.read(9))
            found.add(kind)
            at = file.seek(at + 1 + length)
        return at == size and {_HEADER, _GEOMETRY} <= found and bool(found & _HIERARCHY)
    return False
