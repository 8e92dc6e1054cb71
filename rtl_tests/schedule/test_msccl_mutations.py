"""Files with something changed at random: refused in one line, or right in the end."""

from random import Random
from xml.etree import ElementTree

import msccl_generators as generators
import pytest

import torusfabric as tf

#: Files, and where they fit.
FILES = [
    (generators.ring_allgather(4), "4"),
    (generators.ring_allreduce(3), "3"),
    (generators.recursive_doubling_allgather(4), "4"),
    (generators.halving_doubling_allreduce(4), "2x2"),
    (generators.hierarchical_allgather(2, 3), "2x3"),
    (generators.all_pairs_alltoall(3), "3"),
]

#: What attributes become.
VALUES = ["-1", "0", "1", "2", "7", "999999999", "x", "", "o", "i", "s", "r", "rrc", "rcs", "rrs",
          "rrcs", "cpy", "re", "nop", "alltoall", "reduce_scatter", "broadcast",
          "gather"]  # fmt: skip


def mutated(text, random):
    """A file with one to three changes."""
    root = ElementTree.fromstring(text)
    for _ in range(random.choice([1, 1, 2, 3])):
        element = random.choice([*root.iter()])
        parent = random.choice([found for found in root.iter() if len(found)] or [root])
        name = random.choice([*element.attrib] or ["name"])
        match random.choice("aaaaaadrc"):
            case "a":
                element.set(name, random.choice(VALUES))
            case "d":
                element.attrib.pop(name, None)
            case "r" if len(parent):
                parent.remove(random.choice([*parent]))
            case "c" if len(parent):
                copied = ElementTree.tostring(random.choice([*parent]))
                parent.append(ElementTree.fromstring(copied))
    return ElementTree.tostring(root, encoding="unicode")


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 100), pytest.param(1, 4000, marks=pytest.mark.long)]
)
def test_refused_or_right(tmp_path, seed, count):
    """What is not refused passes the check, which knows nothing of the file."""
    random, path = Random(seed), tmp_path / "file.xml"
    messages, kept = [], 0
    for _ in range(count):
        text, topology = random.choice(FILES)
        path.write_text(mutated(text, random))
        try:
            schedule = tf.import_schedule(
                path,
                topology,
                placement="gray" if topology == "4" and "doubling" in text else "identity",
                switching=random.choice(["store-and-forward", "store-and-forward", "circuit"]),
            )
        except tf.InputError as error:
            messages.append(str(error))
        else:
            tf.check(schedule)
            kept += 1
    assert not any("\n" in message for message in messages)
    assert count / 20 < kept < count / 2


@pytest.mark.parametrize("content", [b"", b"\xff\xfe<", b"<algo>" * 5000, b"<a>" + b"x" * 99])
def test_what_is_no_file_of_this_kind(tmp_path, content):
    """No traceback, whatever the bytes."""
    path = tmp_path / "file.xml"
    path.write_bytes(content)
    with pytest.raises(tf.InputError, match="MSCCL file"):
        tf.import_schedule(path, "4")
