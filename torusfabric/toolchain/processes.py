"""Child processes, which end when their caller does, together with whatever they started.

Each child leads a process group of its own: a shell passes nothing on to what it runs, and a
compiler's driver leaves its passes behind. A group is ended when the call that waits for it is
left by an exception; `ending_signals` turns the signals that end a command into exceptions.

Python raises an exception only between two of its own instructions. A library that computes for
longer than `HEED` seconds is not waited for: a thread, which the signal wakes up, ends the process.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import IO, NoReturn, TypeVar

from .destinations import AnyPath

__all__ = ["Interrupted", "beside", "ending_signals", "leave", "parallel", "run"]

T = TypeVar("T")
R = TypeVar("R")

#: Seconds that processes get to clean up after themselves.
GRACE = 1.0

#: Seconds between two looks at a process.
PERIOD = 1.0

#: Seconds in which the main thread must notice a signal that ends the command.
HEED = 0.5

#: The signals that end a command; not those that a system does not have.
_ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Interrupted(KeyboardInterrupt):
    """A signal came that ends the command."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    @property
    def status(self) -> int:
        """The exit status of a command that ends by it, as shells count it."""
        return 128 + self.number

    def __str__(self) -> str:
        return "interrupted" if self.number == signal.SIGINT else "terminated"


def _end(processes: Iterable[subprocess.Popen[str]]) -> None:
    """End processes and all that they started: ask first, then do not."""
    processes = [process for process in processes if process.poll() is None]
    try:
        for process in processes:
            _signal(process, signal.SIGINT)
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
    finally:
        for process in processes:
            _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _signal(process: subprocess.Popen[str], number: int) -> None:
    """Send a signal to a process and all that it started."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.kill()


class _Signals:
    """Holds back the signals that come while a process is being started, lest it be lost."""

    def __init__(self) -> None:
        self._holding = False
        self._came: int | None = None
        self.noticed = threading.Event()

    def arrive(self, number: int, _: FrameType | None) -> None:
        """Raise what a signal means, now or as soon as that may be."""
        self.noticed.set()
        if self._holding:
            self._came = number
        else:
            raise Interrupted(number)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold signals back during the body; they come in the main thread only."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._holding, self._came = True, None
        try:
            yield
        finally:
            self._holding = False
            if self._came is not None:
                raise Interrupted(self._came)


_signals = _Signals()

#: The running processes; and for each the event that says that its pool of threads has failed.
_running: dict["subprocess.Popen[str]", threading.Event] = {}
_starting = threading.Lock()

#: The event of the pool that a thread belongs to; other threads never fail as a whole.
_of_thread, _never = threading.local(), threading.Event()


@contextlib.contextmanager
def ending_signals() -> Iterator[None]:
    """Raise `Interrupted` for each signal that ends a command, so that its processes end too.

    Signals that are ignored stay so (as after ``nohup``). Has no effect but in the main thread,
    which is the only one that may handle signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    try:
        with _watched_signals():
            for number in _ENDING:
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    before[number] = signal.signal(number, _signals.arrive)
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _watched_signals() -> Iterator[None]:
    """End the process if the main thread does not notice a signal during the body."""
    _signals.noticed.clear()
    receiver, sender = socket.socketpair()
    sender.settimeout(0.0)  # never blocks
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(receiver,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        sender.close()


def _watch(receiver: socket.socket) -> None:
    """Read the numbers of signals; end the process by one that is not noticed in time."""
    with receiver:
        while number := receiver.recv(1):
            _signals.noticed.wait(HEED)
            if number[0] in _ENDING and not _signals.noticed.is_set():
                reason = Interrupted(number[0])
                leave(reason.status, f"torusfabric: {reason}")


def leave(status: int, text: str = "") -> NoReturn:
    """End this process, all that it has started, and its work folders, from any thread.

    Parameters
    ----------
    text : str
        A line for standard error.
    """
    from .folders import remove_work_folders  # here, since hardly any process ends so

    with _starting:  # nothing more is started
        _end(list(_running))
        remove_work_folders()
        with contextlib.suppress(OSError, ValueError, AttributeError):
            print(text, end="\n" if text else "", file=sys.stderr, flush=True)
        os._exit(status)


def run(
    command: Sequence[str],
    *,
    folder: AnyPath | None = None,
    environ: Mapping[str, str] | None = None,
    log: IO[bytes] | None = None,
    look: Callable[[], object] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, with nothing on its standard input.

    Parameters
    ----------
    log : binary file, optional
        Where all of its output goes; otherwise that is returned.
    look : function of (), optional
        Called every second while it runs; what that raises ends it.

    Raises
    ------
    OSError
        If it cannot be started.
    """
    streams = (subprocess.PIPE, subprocess.PIPE) if log is None else (log, subprocess.STDOUT)
    failed = getattr(_of_thread, "failed", _never)
    process = output = None
    try:
        with _signals.held(), _starting:
            if failed.is_set():
                raise Interrupted(signal.SIGINT)
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=streams[0],
                stderr=streams[1],
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
            _running[process] = failed
        while output is None:
            if look is not None:
                look()
            with contextlib.suppress(subprocess.TimeoutExpired):
                output = process.communicate(timeout=PERIOD if look else None)
    except BaseException:
        if process is not None:
            _end([process])
        raise
    finally:
        if process is not None:
            with process:
                del _running[process]
    return subprocess.CompletedProcess(command, process.returncode, *output)


def parallel(function: Callable[[T], R], items: Iterable[T], *, jobs: int = 2) -> Iterator[R]:
    """Apply a function that runs programs to each item, a few at a time; results in order.

    The first failure, or an interrupt, ends what else is running.
    """
    items = list(items)
    if len(items) <= 1 or jobs <= 1:
        yield from map(function, items)
        return
    with _pool(min(jobs, len(items))) as pool:
        yield from pool.map(function, items)


@contextlib.contextmanager
def beside(function: Callable[[], R]) -> Iterator[Callable[[], R]]:
    """Run a function that runs programs beside the body, which is given what waits for its result.

    An exception in the body ends what the function runs.
    """
    with _pool(1) as pool:
        yield pool.submit(function).result


@contextlib.contextmanager
def _pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads; what they run is ended with the body if that fails."""
    failed = threading.Event()
    join = lambda: setattr(_of_thread, "failed", failed)
    pool = ThreadPoolExecutor(threads, initializer=join)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        with _starting:
            failed.set()
            running = [process for process, its in [*_running.items()] if its is failed]
        _end(running)
        raise
    finally:
        pool.shutdown()
