"""Workers on a Dask cluster, which compute the points of a sweep.

A *point* is one step of a sweep, such as a simulation, with a value for each axis of its grid.
"""

import asyncio
import concurrent.futures
from collections.abc import Generator, Iterable

from ..errors import InputError, WorkFailed
from ..toolchain.extras import name_missing_extra
from .grid import Point, point_key
from .results import Row
from .work import compute_row, contents_or_failure, failed_row

__all__ = ["run_on_cluster"]

#: Seconds to wait for a scheduler.
PATIENCE = 10


def run_on_cluster(points: Iterable[Point], address: str) -> Generator[Row, None, None]:
    """Compute points on a Dask cluster, and yield rows as they are done.

    A point is a step of a sweep with a value for each axis; its row is the point with its result.
    If a worker is lost, another worker computes its point. A row is fetched as soon as it is done,
    and then released. Why: when a worker is lost, Dask repeats its work for all unreleased rows.

    Parameters
    ----------
    points : iterable of Point
        The points to compute.
    address : str
        Address of the Dask scheduler, such as ``tcp://host:8786``.

    Raises
    ------
    MissingTool
        If Dask is not installed.
    InputError
        If no scheduler answers at the address.
    WorkFailed
        If the connection to the scheduler is lost.
    """
    with name_missing_extra():
        from distributed import Client, as_completed
        from distributed.comm import resolve_address
    try:
        resolve_address(address)  # here, since a Client takes long to fail for a bad address
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"No Dask scheduler answers at {address} "
            f"({str(error).splitlines()[0] if str(error) else type(error).__name__}); start one "
            "by dask scheduler, and give its address"
        ) from None
    with client:
        futures = {}
        try:
            for point in points:
                contents, lost = contents_or_failure(point)
                if lost is not None:
                    yield lost
                    continue
                name = f"torusfabric-{point_key(point)}"
                futures[client.submit(compute_row, point, contents, key=name, pure=False)] = point
            for future in as_completed(list(futures), loop=client.loop):
                point = futures.pop(future)
                fault = future.exception()
                row = future.result() if fault is None else failed_row(point, str(fault))
                future.release()
                yield row
        except (OSError, concurrent.futures.CancelledError, asyncio.CancelledError):
            raise WorkFailed(f"Scheduler {address} was lost; start again to go on") from None
