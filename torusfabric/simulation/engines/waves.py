"""Waveform files: VCD, FST, and a GTKWave save file beside either.

Engines write VCD within `open_wave_file`, which converts the file to FST if the name asks for it,
and handles errors. The compiled engine writes its VCD with `WaveRecorder`.
"""

import contextlib
import shutil
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, MissingTool, WorkFailed
from ...rtl.fabric import Fabric
from ...toolchain.files import copy_when_finished, open_for_writing
from ...toolchain.owned import is_replaceable
from .gtkwave import WaveLine, gtkwave_text, wave_lines

__all__ = ["FORMATS", "WaveRecorder", "check_wave_file", "convert_to_fst", "is_complete_fst",
           "open_wave_file"]  # fmt: skip

#: Endings of file names, one for each format.
FORMATS = (".vcd", ".fst")


def check_wave_file(wave: str | Path | None) -> None:
    """Check the name of a waveform file, and that the tool for its format is installed.

    Parameters
    ----------
    wave : str, Path or None
        Path of the file; None for no file, which is always accepted.

    Raises
    ------
    InputError
        If the ending of the name is unknown.
    MissingTool
        If the format needs a tool that is not installed.
    """
    if wave is None:
        return
    suffix = Path(wave).suffix
    if suffix not in FORMATS:
        raise InputError(f"File of waves must end in {' or '.join(FORMATS)}, not {Path(wave).name}")
    from ...toolchain import tools  # here, since few runs write waves

    if suffix == ".fst" and tools.find("vcd2fst") is None:
        raise MissingTool(
            "Tool vcd2fst was not found: install the package gtkwave of your system, "
            "or name a file that ends in .vcd"
        )


@contextlib.contextmanager
def open_wave_file(wave: str | Path | None, fabric: Fabric, scope: str) -> Iterator[str | None]:
    """Context manager: provide a temporary VCD file, which becomes the waveform file at the end.

    The engine writes the file in the ``with`` block. A GTKWave save file is written beside it, with
    the ending ``.gtkw``, unless the user has saved another one there. If a run does not finish
    (`WorkFailed`), the waveforms are kept, because they show why. Any other failure leaves no file.

    Parameters
    ----------
    wave : str, Path or None
        The waveform file; None for none.
    scope : str
        VCD scope that contains the signals of the fabric.

    Yields
    ------
    str or None
        Name of the temporary file; None without a waveform file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    if wave is None:
        yield None
        return
    check_wave_file(wave)
    wave, failure = Path(wave), None
    try:
        with copy_when_finished(wave) as written:
            try:
                yield str(written)
            except WorkFailed as error:
                failure = error
            shown = gtkwave_text(wave, scope, fabric.program.topology, wave_lines(fabric))
            if wave.suffix == ".fst":
                convert_to_fst(written)
            # Keep a save file that the user has since overwritten from GTKWave.
            if is_replaceable(wave.with_suffix(".gtkw"), "[dumpfile]"):
                with open_for_writing(wave.with_suffix(".gtkw")) as file:
                    # A file name may contain bytes that are invalid UTF-8.
                    file.write(shown.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise InputError(
            f"File {wave} of waves cannot be written ({error.strerror}); choose another file or "
            "folder"
        ) from None
    if failure is not None:
        raise failure


class WaveRecorder:
    """Writer of a VCD file, edge by edge, for the compiled engine.

    Parameters
    ----------
    lines : sequence of WaveLine
        Signals to write, each a bit range of a net.
    values : ndarray of uint32
        Values of all nets, one net after another, in chunks of 32 bits; the session updates them in
        place.
    first : dict of str to int
        Net -> index of its first chunk in `values`.
    reset : str
        Net of the reset, which is a key of `first`, too.
    """

    def __init__(
        self,
        file: TextIO,
        lines: Sequence[WaveLine],
        values: NDArray[np.uint32],
        first: Mapping[str, int],
        reset: str,
    ) -> None:
        from vcd import VCDWriter  # here, since few runs write waves

        self._file, self._writer = file, VCDWriter(file, timescale="1 ns")
        self._values, self._old, self._reset = values, ~values, first[reset]
        self._clock, self._rst = (
            self._writer.register_var("fabric", name, "wire", size=1, init=0)
            for name in ("clk", "rst")
        )
        # Each line: variable, chunks, lowest bit within them, mask. For each chunk, its lines.
        self._lines: list[tuple[Any, slice, int, int]] = []
        self._having = defaultdict[int, list[int]](list)
        for number, line in enumerate(lines):
            scope, part = ".".join(filter(None, ("fabric", line.vcd_scope))), line.part
            variable = self._writer.register_var(scope, line.name, "wire", size=part.width, init=0)
            start = first[part.net] + part.start // 32
            chunks = range(start, start + -(-(part.start % 32 + part.width) // 32))
            place = slice(chunks.start, chunks.stop)
            self._lines.append((variable, place, part.start % 32, (1 << part.width) - 1))
            for chunk in chunks:
                self._having[chunk].append(number)
        self._failure: BaseException | None = None

    def record_edge(self, clocks: int, high: int) -> int:
        """Write the values that have changed since the last call into the VCD file.

        It is called twice for each clock edge: before the edge and after it.

        Parameters
        ----------
        clocks : int
            Number of the edge.
        high : int
            0 for the values before the edge, 1 for those after it.

        Returns
        -------
        int
            0, or 1 if an error has ended the recording; see `flush_or_raise`.
        """
        try:
            time = 10 * clocks + 5 * high
            self._writer.change(self._clock, time, high)
            self._writer.change(self._rst, time, int(self._values[self._reset]))
            changed = np.flatnonzero(self._values != self._old).tolist()
            self._old = self._values.copy()
            for number in sorted({line for chunk in changed for line in self._having[chunk]}):
                variable, place, low, ones = self._lines[number]
                value = int.from_bytes(self._old[place].tobytes(), "little") >> low & ones
                self._writer.change(variable, time, value)
        except BaseException as error:  # also an interrupt, which would be lost in a call from C
            self._failure = error
        return int(self._failure is not None)

    def flush_or_raise(self) -> None:
        """Flush the file, or raise the error that ended the recording, such as an `OSError`."""
        if self._failure is None:
            self._file.flush()
        else:
            raise self._failure


#: FST block types: header, signal widths, and signal names (three kinds of compression).
_HEADER, _GEOMETRY, _HIERARCHY = 0, 3, {4, 6, 7}


def convert_to_fst(path: Path) -> None:
    """Convert the VCD file at `path` to FST, in place.

    Raises
    ------
    WorkFailed
        If the tool fails, or its output is incomplete.
    """
    from ...toolchain import tools  # here, since few runs write waves
    from ...toolchain.folders import work_folder

    with work_folder("waves") as folder:
        args = [str(path.absolute()), "waves.fst"]
        tools.run("vcd2fst", args, folder=folder, log="log", what="the waves",
                  makes=["waves.fst"])  # fmt: skip
        if not is_complete_fst(folder / "waves.fst"):
            raise WorkFailed(
                f"vcd2fst failed on the waves: it could not write all to {folder.parent} (is that "
                "disk full? TMPDIR names another folder)"
            )
        shutil.copyfile(folder / "waves.fst", path)


def is_complete_fst(path: Path) -> bool:
    """Return True if the FST file at `path` has all of its blocks.

    Why: vcd2fst reports success even if the disk is full. A block is one byte for its type, eight
    bytes for its length without the type byte, and the content.
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
