"""The errors a user may meet, each with the exit status of the command that meets it."""

__all__ = ["InputError", "MissingTool", "ScheduleError", "TorusfabricError", "WorkFailed"]


class TorusfabricError(Exception):
    """Base of all errors that end a command with one clear line instead of a traceback."""

    status = 2


class InputError(TorusfabricError, ValueError):
    """What the user asked for does not exist or does not fit."""

    status = 1


class WorkFailed(TorusfabricError):
    """A check, a simulation or a build did not succeed."""

    status = 2


class MissingTool(TorusfabricError):
    """An external program is needed and was not found."""

    status = 3


class ScheduleError(WorkFailed, ValueError):
    """A schedule breaks a rule of its model or does not deliver all that its collective must.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    round, node, port : int, optional
        Where: the round (counted from 1), the node and the out-port (or in-port) number.
    block : tuple of int, optional
        Which block: (origin, chunk) or (origin, destination, chunk).
    """

    def __init__(
        self,
        message: str,
        *,
        round: int | None = None,
        node: int | None = None,
        port: int | None = None,
        block: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(message)
        self.round = round
        self.node = node
        self.port = port
        self.block = block
