"""The errors that users see. Each class has the exit status of a command that raises it."""

__all__ = ["InputError", "MissingTool", "NotEnoughMemory", "ScheduleError", "TorusfabricError",
           "WorkFailed"]  # fmt: skip


class TorusfabricError(Exception):
    """Base class of all errors that end a command with one clear line instead of a traceback.

    The class attribute `status` is the exit status of such a command.

    Examples
    --------
    The algorithm `lee-code` has no schedule for this torus, so the command would end with status 1:

    >>> import torusfabric as tf
    >>> try:
    ...     tf.plan("5x5", "allgather", algorithm="lee-code")
    ... except tf.TorusfabricError as error:
    ...     print(error.status)
    1
    """

    status = 2


class InputError(TorusfabricError, ValueError):
    """The input of the user names something unknown, or something that does not fit.

    Commands end with exit status 1. Code that expects a `ValueError` can catch it, too.

    Examples
    --------
    >>> import torusfabric as tf
    >>> issubclass(tf.InputError, ValueError), tf.InputError.status
    (True, 1)
    """

    status = 1

    def __init__(self, message: object = "", *others: object) -> None:
        # Names and values of users, such as arrays, may have several lines.
        super().__init__(r"\n".join(str(message).split("\n")), *others)


class NotEnoughMemory(InputError):
    """The request needs more memory than is free on this computer.

    The input may be right, but the class is an `InputError`: commands end with exit status 1.

    Examples
    --------
    >>> from torusfabric.errors import InputError, NotEnoughMemory
    >>> issubclass(NotEnoughMemory, InputError)
    True
    """


class WorkFailed(TorusfabricError):
    """A check, a simulation or a build did not succeed. Commands end with exit status 2.

    Examples
    --------
    >>> import torusfabric as tf
    >>> issubclass(tf.ScheduleError, tf.WorkFailed), tf.WorkFailed.status
    (True, 2)
    """

    status = 2


class MissingTool(TorusfabricError):
    """An external program is needed and was not found. Commands end with exit status 3.

    Examples
    --------
    >>> import torusfabric as tf
    >>> tf.MissingTool.status
    3
    """

    status = 3


class ScheduleError(WorkFailed, ValueError):
    """A schedule breaks a rule of its model or does not deliver all that its collective must.

    Parameters
    ----------
    message : str
        The broken rule, in one line.
    round : int, optional
        The round in which the rule is broken, counted from 1; None if a block is missing after the
        last round.
    node, port : int, optional
        The node, and the number of its out-port or in-port.
    block : tuple of int, optional
        The block, as (origin, chunk) or (origin, destination, chunk).

    Examples
    --------
    Without its second round, this broadcast does not deliver block (origin 0, chunk 0) to node 1.

    >>> import torusfabric as tf
    >>> from dataclasses import replace
    >>> schedule = tf.plan("3x3", "broadcast", algorithm="diagonal")
    >>> try:
    ...     tf.check(replace(schedule, transfers=schedule.transfers[:1]))
    ... except tf.ScheduleError as error:
    ...     error.node, error.block
    (1, (0, 0))
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
