"""Parser of MSCCL XML: reads a file safely into plain values, and checks its form.

A file lists the thread blocks of each GPU with their peers, and the steps of each thread block in
order. Attributes that only some tools write may be missing. The meaning of steps is left to
`machine`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...errors import InputError
from ...toolchain.extras import name_missing_extra
from ...toolchain.reading import excerpt

__all__ = ["RECEIVING", "SENDING", "MscclFile", "MscclStep", "ThreadBlock", "parse_msccl"]

#: Step types that receive, step types that send, and all step types.
RECEIVING = frozenset({"r", "rcs", "rrc", "rrs", "rrcs"})
SENDING = frozenset({"s", "rcs", "rrs", "rrcs"})
TYPES = ("nop", "s", "r", "rcs", "rrc", "rrs", "rrcs", "cpy", "re")

#: The buffers that a step reads or writes: input, output and scratch.
BUFFERS = ("i", "o", "s")

#: The largest accepted numbers of GPUs, of chunks that a step moves, and of rounds.
MOST_GPUS, MOST_COUNT, MOST_ROUNDS = 2**16, 2**20, 2**18

#: A number in an attribute.
_NUMBER = re.compile(r"-?[0-9]{1,9}")

#: The most characters of a name; the rest is cut off.
LONGEST_NAME = 100


class MscclStep(NamedTuple):
    """A step of a thread block.

    Parameters
    ----------
    number : int
        The number of the step in the thread block.
    source, target : tuple of (str, int)
        The buffer, ``i``, ``o`` or ``s``, and the index of the first chunk in it. The index is -1
        if the step does not use the location.
    chunks : int
        Number of chunks that the step moves, from and to adjacent offsets.
    waits_for : tuple of (int, int) or None
        A thread block of the same GPU and one of its steps, which must be executed before.
    round : int or None
        The first round in which the step may send, counted from 0, if the file gives one.
    """

    number: int
    type: str
    source: tuple[str, int]
    target: tuple[str, int]
    chunks: int
    waits_for: tuple[int, int] | None
    round: int | None


class ThreadBlock(NamedTuple):
    """A thread block of a GPU, which executes its steps in order.

    It has a peer, another GPU, to which it sends, and a peer from which it receives; -1 for none.
    """

    gpu: int
    number: int
    send: int
    recv: int
    channel: int
    steps: list[MscclStep]

    def location_text(self, step: int | None = None) -> str:
        """Return text for people that names the thread block, or its step with number `step`."""
        place = f"gpu {self.gpu}, thread block {self.number}"
        return place if step is None else f"{place}, step {step}"


class MscclFile(NamedTuple):
    """The content of an MSCCL file.

    Parameters
    ----------
    collective : str
        The name of the collective as written.
    in_place : bool
        True if input and output are one memory.
    chunks : int
        ``nchunksperloop``, or if that is missing the size of the largest input or output.
    scratch : tuple of (int or None)
        The chunks of each GPU's scratch buffer.
    facts : dict of str to str
        All attributes of the outermost element, such as ``root``.
    """

    name: str
    collective: str
    gpus: int
    in_place: bool
    chunks: int
    scratch: tuple[int | None, ...]
    blocks: tuple[ThreadBlock, ...]
    facts: Mapping[str, str]


def _parse_xml(raw: bytes) -> Any:
    """Return the outermost element of the XML in the bytes `raw`.

    Entities and document types are refused.
    """
    from xml.etree.ElementTree import ParseError

    with name_missing_extra():
        from defusedxml.common import DefusedXmlException
        from defusedxml.ElementTree import fromstring

    try:
        return fromstring(raw, forbid_dtd=True)
    except DefusedXmlException as error:
        what = type(error).__name__.removesuffix("Forbidden")
        raise InputError(f"XML must have no document type and no entities, not {what}") from None
    except (ParseError, ValueError, LookupError) as error:
        raise InputError(f"Content must be XML: {error}") from None


def parse_msccl(raw: bytes) -> MscclFile:
    """Parse the bytes of an MSCCL file.

    Parameters
    ----------
    raw : bytes
        The content of the file.

    Raises
    ------
    InputError
        If the form is wrong. The message names GPU, thread block and step.
    """
    root = _parse_xml(raw)
    if root.tag != "algo":
        raise InputError(f"Outermost element must be algo, not {excerpt(root.tag)}")
    facts = dict(root.attrib)
    elements = {}
    for element in root.iter("gpu"):
        number = _parse_number(element, "id", "A gpu", least=0)
        if number in elements:
            raise InputError(f"Gpu {number} must be there once, not twice")
        elements[number] = element
    count = _parse_number(root, "ngpus", "The algo", least=1, default=len(elements))
    if count > MOST_GPUS:
        raise InputError(f"Ngpus must be at most {MOST_GPUS}, not {count}")
    if sorted(elements) != list(range(count)):
        some = ", ".join(map(str, sorted(elements)[:8])) + ", .." * (len(elements) > 8)
        raise InputError(f"Gpus must be those from 0 to {count - 1}, not {some or 'none'}")
    if "coll" not in facts:
        raise InputError("The algo must have the attribute coll, such as allgather")
    # The name becomes the algorithm name of a schedule, which must be printable.
    name = "".join(char for char in facts.get("name", "") if char.isascii() and char.isprintable())
    scratch = (_parse_number(elements[k], "s_chunks", f"Gpu {k}", default=-1) for k in range(count))
    return MscclFile(
        name=name[:LONGEST_NAME] or "msccl",
        collective=facts["coll"],
        gpus=count,
        in_place=facts.get("inplace", "0") == "1" and facts.get("outofplace", "0") != "1",
        chunks=_parse_chunks(root, elements),
        scratch=tuple(size if size >= 0 else None for size in scratch),
        blocks=tuple(
            block for gpu in range(count) for block in _parse_blocks(elements[gpu], gpu, count)
        ),
        facts=facts,
    )


def _parse_chunks(root: Any, elements: Mapping[int, Any]) -> int:
    """Return the number of chunks of the input or the output buffer, whichever is larger.

    The outermost element of the file, `root`, may give this number. Otherwise it follows from the
    sizes of the buffers, which `elements`, the elements of the GPUs by number, give.
    """
    if "nchunksperloop" in root.attrib:
        return _parse_number(root, "nchunksperloop", "The algo", least=1)
    names = ("i_chunks", "o_chunks")
    sizes = [
        _parse_number(element, name, f"Gpu {gpu}", default=0)
        for gpu, element in elements.items()
        for name in names
    ]
    if max(sizes) < 1:
        raise InputError("The algo must have the attribute nchunksperloop")
    return max(sizes)


def _parse_blocks(element: Any, gpu: int, gpus: int) -> Iterator[ThreadBlock]:
    """Yield the thread blocks of GPU `gpu` from its `element`, in a file of `gpus` GPUs."""
    seen: set[int] = set()
    taken: dict[tuple[str, int, int], int] = {}
    for place, child in enumerate(element.iter("tb")):
        number = _parse_number(child, "id", f"Thread block of gpu {gpu}", least=0, default=place)
        block = ThreadBlock(
            gpu=gpu,
            number=number,
            send=_parse_number(child, "send", f"Thread block {number} of gpu {gpu}", default=-1),
            recv=_parse_number(child, "recv", f"Thread block {number} of gpu {gpu}", default=-1),
            channel=_parse_number(child, "chan", f"Thread block {number} of gpu {gpu}", default=0),
            steps=[],
        )
        if number in seen:
            raise InputError(f"{block.location_text().capitalize()} must be there once, not twice")
        seen.add(number)
        for what, peer in (("send", block.send), ("recv", block.recv)):
            if peer >= gpus or peer == gpu or peer < -1:
                raise InputError(
                    f"Peer {what} of {block.location_text()} must be -1 or another gpu from 0 to "
                    f"{gpus - 1}, not {peer}"
                )
            other = taken.setdefault((what, peer, block.channel), number)
            if peer >= 0 and other != number:
                raise InputError(
                    f"Peer {what} of {block.location_text()} must be that of one thread block on "
                    f"channel {block.channel}, not of thread block {other} too"
                )
        block.steps.extend(_parse_steps(child, block))
        yield block


def _parse_steps(element: Any, block: ThreadBlock) -> list[MscclStep]:
    """Return the steps of a thread block, in the order in which it executes them.

    `element` is the XML element of the thread block.
    """
    steps: dict[int, MscclStep] = {}
    for place, child in enumerate(element):
        if child.tag != "step":
            continue
        number = _parse_number(
            child, "s", f"A step of {block.location_text()}", least=0, default=place
        )
        if number in steps:
            raise InputError(f"Step must be there once, not {block.location_text(number)} twice")
        steps[number] = _parse_step(child, block, number)
    return [steps[number] for number in sorted(steps)]


def _parse_step(element: Any, block: ThreadBlock, number: int) -> MscclStep:
    """Return step `number` of a thread block, parsed from its XML element."""
    where = f"Step of {block.location_text(number)}"
    type_ = element.get("type")
    if type_ not in TYPES:
        raise InputError(
            f"Type of {block.location_text(number)} must be {', '.join(TYPES[:-1])} or "
            f"{TYPES[-1]}, "
            f"not {excerpt(type_)}"
        )
    count = _parse_number(element, "cnt", where, default=1)
    if type_ != "nop" and not 1 <= count <= MOST_COUNT:
        raise InputError(
            f"Cnt of {block.location_text(number)} must be from 1 to {MOST_COUNT}, not {count}"
        )
    for types, peer, what in ((SENDING, block.send, "send"), (RECEIVING, block.recv, "recv")):
        if type_ in types and peer < 0:
            raise InputError(
                f"Type of {block.location_text(number)} must suit its thread block, which has "
                f"no {what} "
                f"peer, not be {type_}"
            )
    depid, deps, declared = (
        _parse_number(element, name, where, default=-1) for name in ("depid", "deps", "round")
    )
    if declared >= MOST_ROUNDS:
        raise InputError(
            f"Round of {block.location_text(number)} must be below {MOST_ROUNDS}, not {declared}"
        )
    return MscclStep(
        number=number,
        type=type_,
        source=_parse_location(element, "src", where),
        target=_parse_location(element, "dst", where),
        chunks=count,
        waits_for=(depid, deps) if min(depid, deps) >= 0 else None,
        round=declared if declared >= 0 else None,
    )


def _parse_location(element: Any, side: str, where: str) -> tuple[str, int]:
    """Return the buffer and the offset of one `side` of a step, ``src`` or ``dst``.

    `element` is the XML element of the step, and `where` names the step in messages.
    """
    buffer = element.get(f"{side}buf", "i")
    if buffer not in BUFFERS:
        what = where.replace("Step of", f"{side.capitalize()}buf of", 1)
        raise InputError(f"{what} must be i, o or s, not {excerpt(buffer)}")
    return buffer, _parse_number(element, f"{side}off", where, default=-1)


def _parse_number(
    element: Any, name: str, where: str, *, least: int = -1, default: int | None = None
) -> int:
    """Return the whole number in the attribute `name` of an element; `default` if it is missing.

    `where` is the subject of the message. The number must be at least `least`.
    """
    text = element.get(name)
    if text is None:
        if default is None:
            raise InputError(f"{where} must have the attribute {name}")
        return default
    if not _NUMBER.fullmatch(text) or int(text) < least:
        what = "a whole number" if least < 0 else f"a whole number of at least {least}"
        raise InputError(f"{where} must have {what} as {name}, not {excerpt(text)}")
    return int(text)
