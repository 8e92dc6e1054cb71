"""Child processes that never outlive their caller, with all of their own descendants.

Each child leads a process group of its own, and the whole group is ended at once. Why: a shell does
not pass signals on to its children, and a compiler driver leaves its passes running. The group is
ended when an exception leaves the call that waits for the child. `interrupt_on_signals` turns the
signals that end a command (SIGINT, SIGTERM, SIGHUP) into such exceptions.

Python raises the exception of a signal only between two of its own instructions, so a library in a
long computation would delay it. Therefore a thread watches for signals as well. If the main thread
has not reacted within `REACTION_SECONDS` seconds, the thread ends the whole process.
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

__all__ = ["Interrupted", "run_in_background", "interrupt_on_signals", "exit_process",
           "map_in_threads", "run"]  # fmt: skip

T = TypeVar("T")
R = TypeVar("R")

#: Seconds that a process group has to clean up after SIGINT, before it is killed.
GRACE = 1.0

#: Seconds from one call of `look` to the next while a process runs.
PERIOD = 1.0

#: Seconds within which the main thread must react to a signal that ends the command.
REACTION_SECONDS = 0.5

#: The signals that end a command, as far as the platform has them.
_ENDING_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Interrupted(KeyboardInterrupt):
    """The exception for a signal that ends the command.

    Parameters
    ----------
    number : int
        Number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    @property
    def status(self) -> int:
        """The exit status that a shell reports for a process ended by this signal."""
        return 128 + self.number

    def __str__(self) -> str:
        return "interrupted" if self.number == signal.SIGINT else "terminated"


def _end_processes(processes: Iterable[subprocess.Popen[str]]) -> None:
    """End process groups: send SIGINT, wait up to `GRACE` seconds for each, then kill the rest.

    Each of `processes` leads one of the groups; those that have ended already are skipped.
    """
    processes = [process for process in processes if process.poll() is None]
    try:
        for process in processes:
            _send_signal(process, signal.SIGINT)
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
    finally:
        for process in processes:
            _send_signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _send_signal(process: subprocess.Popen[str], number: int) -> None:
    """Send signal `number` to a process and all others in its group, if they still exist.

    On a system without process groups, the process alone is killed, whatever the number.
    """
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.kill()


class _SignalHandler:
    """Handler of the signals that end a command, which can defer them for a moment.

    Signals are deferred while a process is being started. Why: an exception between the start of a
    process and its registration in `_running` would leave the process without anybody to end it.
    """

    def __init__(self) -> None:
        self._holding = False
        self._came: int | None = None
        self.noticed = threading.Event()

    def handle(self, number: int, _: FrameType | None) -> None:
        """Handle signal `number` by raising `Interrupted`.

        While signals are deferred, the exception is raised at the end of `defer_signals` instead.
        """
        self.noticed.set()
        if self._holding:
            self._came = number
        else:
            raise Interrupted(number)

    @contextlib.contextmanager
    def defer_signals(self) -> Iterator[None]:
        """Context manager: defer signals while its ``with`` block runs.

        At the end of the block, the last signal that has arrived raises `Interrupted`. In other
        threads than the main thread nothing happens, because Python handles signals in the main
        thread only.
        """
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


_signals = _SignalHandler()

#: The running processes. Each has the event that is set when the pool of its thread has failed.
_running: dict["subprocess.Popen[str]", threading.Event] = {}
_starting = threading.Lock()

#: The failure event of the current thread's pool; and the event, never set, of all other threads.
_thread_failure, _no_failure = threading.local(), threading.Event()


@contextlib.contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Context manager: in its ``with`` block, signals that end a command raise `Interrupted`.

    The exception makes sure that child processes are ended, too. Signals that are ignored stay
    ignored, as after ``nohup``. Outside the main thread there is no effect, because Python lets
    only the main thread handle signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    try:
        with _watch_signals():
            for number in _ENDING_SIGNALS:
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    before[number] = signal.signal(number, _signals.handle)
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _watch_signals() -> Iterator[None]:
    """Context manager: watch that the main thread reacts to signals in its ``with`` block.

    If it does not react to a signal in time, a thread ends the process.
    """
    _signals.noticed.clear()
    receiver, sender = socket.socketpair()
    sender.settimeout(0.0)  # `set_wakeup_fd` demands a socket that never blocks
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch_reaction, args=(receiver,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        sender.close()


def _watch_reaction(receiver: socket.socket) -> None:
    """Wait for signals, and end the process if the main thread does not react to one.

    The function runs in a thread of its own, and reads the numbers of arriving signals from
    `receiver`. The main thread has `REACTION_SECONDS` seconds to react to a signal that ends a
    command.
    """
    with receiver:
        while number := receiver.recv(1):
            _signals.noticed.wait(REACTION_SECONDS)
            if number[0] in _ENDING_SIGNALS and not _signals.noticed.is_set():
                reason = Interrupted(number[0])
                exit_process(reason.status, f"torusfabric: {reason}")


def exit_process(status: int, text: str = "") -> NoReturn:
    """End this process from any thread, with its child processes and its work folders.

    Parameters
    ----------
    status : int
        Exit status.
    text : str
        Line for standard error; no line if empty.
    """
    from .folders import remove_work_folders  # here, because few processes end this way

    with _starting:  # no other thread can start a process from here on
        _end_processes(list(_running))
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
    """Run a program until it exits, with empty standard input.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    folder : path, optional
        Working directory of the program.
    environ : mapping of str to str, optional
        Environment of the program, by default that of this process.
    log : binary file, optional
        File for standard output and standard error. By default the result holds both.
    look : function of (), optional
        Called every `PERIOD` seconds while the program runs. An exception from it ends the program.

    Returns
    -------
    subprocess.CompletedProcess
        The exit status; ``stdout`` and ``stderr`` as text if `log` is left out.

    Raises
    ------
    OSError
        If the program cannot be started.
    """
    streams = (subprocess.PIPE, subprocess.PIPE) if log is None else (log, subprocess.STDOUT)
    failed = getattr(_thread_failure, "failed", _no_failure)
    process = output = None
    try:
        with _signals.defer_signals(), _starting:
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
            _end_processes([process])
        raise
    finally:
        if process is not None:
            with process:
                del _running[process]
    return subprocess.CompletedProcess(command, process.returncode, *output)


def map_in_threads(function: Callable[[T], R], items: Iterable[T], *, jobs: int = 2) -> Iterator[R]:
    """Apply a function to items in several threads, and yield the results in order.

    The function runs programs by `run`. The first exception ends all programs of the other threads.

    Parameters
    ----------
    function : function of one item
        The function, called once for each item.
    items : iterable
        The items, all read before the first call.
    jobs : int
        Largest number of threads.
    """
    items = list(items)
    if len(items) <= 1 or jobs <= 1:
        yield from map(function, items)
        return
    with _thread_pool(min(jobs, len(items))) as pool:
        yield from pool.map(function, items)


@contextlib.contextmanager
def run_in_background(function: Callable[[], R]) -> Iterator[Callable[[], R]]:
    """Context manager: run a function in a thread while its ``with`` block runs.

    An exception in the block ends the programs that the function runs by `run`.

    Yields
    ------
    function of ()
        Waits for the end of the thread and returns the result of `function`.
    """
    with _thread_pool(1) as pool:
        yield pool.submit(function).result


@contextlib.contextmanager
def _thread_pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Context manager: a pool of `threads` threads for its ``with`` block.

    An exception in the block ends all programs that the threads run.
    """
    failed = threading.Event()
    join = lambda: setattr(_thread_failure, "failed", failed)
    pool = ThreadPoolExecutor(threads, initializer=join)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        with _starting:
            failed.set()
            running = [process for process, its in [*_running.items()] if its is failed]
        _end_processes(running)
        raise
    finally:
        pool.shutdown()
