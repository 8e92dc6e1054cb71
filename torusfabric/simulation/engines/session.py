"""The words of a compiled model from their initial state on, and what drives them."""

from __future__ import annotations

import ctypes
import errno
import os

import numpy as np
from numpy.typing import NDArray

from ...errors import WorkFailed
from ...rtl.fabric import Fabric
from .base import Job, image_edges
from .gtkwave import WaveLine, wave_lines
from .host_port import CTask
from .model import Model
from .model_objects import CDesign, CNet, CompiledCells, CTap, Objects

__all__ = ["INPUTS", "OUTPUTS", "Session"]

INPUTS = ("start", "host_we", "host_node", "host_addr", "host_wdata")
OUTPUTS = ("busy", "done", "cycles", "host_rdata")

#: What the functions of the library are given: a model, or a system of boards, and what else.
ARGUMENTS = {
    "model_open": (ctypes.POINTER(CDesign),),
    **dict.fromkeys(("model_begin", "model_tick", "model_close"), (ctypes.c_void_p,)),
    "model_watch": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64),
    "model_run": (ctypes.c_void_p, ctypes.POINTER(CTask)),
    "model_run_streams": (ctypes.c_void_p, ctypes.c_void_p),
    "model_run_board": (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p),
    "model_run_boards": (ctypes.c_void_p, ctypes.c_void_p),
}

#: Words that are worked out in a cycle from which on threads share them.
MANY = 1 << 16

#: Instances of a loop that a thread works out at a time.
BLOCK = 1 << 13

#: More threads than this wait for each other more than they do.
MOST_THREADS = 8


def _threads() -> int:
    """Threads for the processors that nothing else uses: to wait for one that does costs more."""
    if not hasattr(os, "sched_getaffinity"):
        return min(os.cpu_count() or 1, MOST_THREADS)
    idle = len(os.sched_getaffinity(0)) - round(os.getloadavg()[0])
    return min(max(idle, 1), MOST_THREADS)


class Session:
    """The words of a model, from their initial state on.

    Parameters
    ----------
    vcd : str or None
        File for the waves.
    threads : int, optional
        As of `CompiledEngine`.

    Attributes
    ----------
    inputs : dict of str to ndarray of uint32
        The inputs of the whole, in chunks of 32 bits.
    keep : function of (ndarray) -> int
        Keeps an array as long as the model; returns its address.
    """

    def __init__(
        self, model: Model, fabric: Fabric, *, vcd: str | None, threads: int | None = None
    ) -> None:
        self._fabric, self._model = fabric, model
        self._objects = objects = Objects(model)
        self._library, self.inputs, self.keep = objects.library, objects.inputs, objects.keep
        self._taps: list[CTap] = []
        lines = [] if vcd is None else wave_lines(fabric)
        self._nets = nets = (CNet * len(lines))(*map(self._net, lines))
        # Of a top without a host port there are none.
        places = [objects.inputs[name].ctypes.data if name in objects.inputs else 0
                  for name in INPUTS]  # fmt: skip
        shown = {name: self._value(name) for name in OUTPUTS if name in model.netlist.nets}
        self._design = objects.design(
            places=objects.keep(np.array(places, np.uintp)), nets=ctypes.addressof(nets),
            net_count=len(nets), wave=None if vcd is None else os.fsencode(vcd),
            threads=_threads() if threads is None else threads, many=MANY, block=BLOCK, **shown,
        )  # fmt: skip
        for name, arguments in ARGUMENTS.items():
            getattr(self._library, name).argtypes = arguments
        self._library.model_open.restype = ctypes.c_void_p
        self._handle = self._library.model_open(self._design)
        if not self._handle:
            raise OSError(errno.EIO, "it cannot be opened")
        self._watch()
        self._library.model_begin(self._handle)

    def _value(self, net: str) -> int:
        """Where the value of a net will be shown."""
        value, taps = self._objects.value(net)
        self._taps += taps
        return int(value.ctypes.data)

    def _watch(self) -> None:
        """Show what is asked for from now on."""
        taps = (CTap * len(self._taps))(*self._taps)
        self._library.model_watch(self._handle, ctypes.addressof(taps), len(taps))
        self._taps = []

    def _net(self, line: WaveLine) -> CNet:
        """Where a line lies in memory."""
        scope, name, part = line.scope.encode(), line.name.encode(), line.part
        place = self._value(part.net) + part.start // 32 * 4
        return CNet(scope, name, place, part.start % 32, part.width)

    def choose(self, job: Job) -> None:
        """Choose what runs do from now on; whoever takes it reads it when the start comes."""
        for name, value in job.inputs.items():
            self.inputs[name][0] = value

    def load(self) -> None:
        """Load the image of a fabric into which nothing is built in.

        Raises
        ------
        WorkFailed
            If the fabric refuses it.
        """
        if not self._fabric.empty:
            return
        loaded = self.shown("loaded")
        for inputs in image_edges(self._fabric.image):
            for name, value in inputs.items():
                self.inputs[name][0] = value
            self._library.model_tick(self._handle)
        if not loaded[0]:
            raise WorkFailed("Image must be taken by the fabric, not refused")

    def run(self, task: CTask) -> int:
        """Carry a task out."""
        return int(self._library.model_run(self._handle, task))

    def cells(self) -> CompiledCells:
        """The words of the memories of endpoints."""
        return CompiledCells(self._objects, self._model, self._fabric)

    def run_streams(self, task: ctypes.Structure) -> int:
        """Send into streams, and receive; the task is a `StreamTask` of ``streams.h``."""
        return int(self._library.model_run_streams(self._handle, ctypes.byref(task)))

    @property
    def handle(self) -> int:
        """The model, for functions of its library."""
        return int(self._handle)

    def run_board(self, system: ctypes.Structure, board: int, task: CTask) -> int:
        """Carry a task out on one of several boards; the system is a `System` of ``boards.h``."""
        return int(self._library.model_run_board(ctypes.byref(system), board, ctypes.byref(task)))

    def run_boards(self, system: ctypes.Structure, run: ctypes.Structure) -> int:
        """Run all boards; the run is a `BoardsRun` of ``boards.h``."""
        return int(self._library.model_run_boards(ctypes.byref(system), ctypes.byref(run)))

    def address(self, net: str) -> int:
        """Where the value of a net is shown."""
        return int(self.shown(net).ctypes.data)

    def shown(self, net: str) -> NDArray[np.uint32]:
        """The value of a net from now on, in chunks of 32 bits."""
        value, taps = self._objects.value(net)
        self._taps += taps
        self._watch()
        return value

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.model_close(self._handle)
