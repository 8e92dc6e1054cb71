"""Pictures of terms agree with the networks and programs that they show."""

import re

import terms

import torusfabric as tf


def texts(picture: str) -> list[str]:
    """Return the texts of a picture in their order."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture)


def test_rows_are_those_of_a_program() -> None:
    """The picture of rows shows modes, forms and rows of an engine on 4x4."""
    forms = tf.plan_forms("4x4", "allgather", max_flits=64)
    program = tf.compile([forms, tf.plan("4x4", "alltoall")], max_flits=64)
    drawn, first = texts(terms.program_rows()), 0
    for mode_number, mode in enumerate(program.modes):
        for number, form in enumerate(mode.forms):
            last = first + form.schedule.steps - 1
            at = drawn.index(f"{number}: {form.schedule.algorithm}")
            row, mode_name, _, step = drawn[at - 2 : at + 2]
            assert (row, step) == (str(first), "1")
            assert mode_name.startswith(f"{mode_number}: ") if number == 0 else mode_name == ""
            # Two cells of the row between the first and the last have dots.
            end = drawn.index("..", drawn.index("..", at) + 1) + 2
            row, *_, step = drawn[end : end + 4]
            assert (row, step) == (str(last), str(form.schedule.steps))
            first = last + 1
            drawn = drawn[at + 1 :]


def numbers(picture: str) -> list[tuple[float, float, int, bool]]:
    """Return x, y and value of each number in a picture, and True if it is the name of a node."""
    found = re.findall(r'<text x="([^"]*)" y="([^"]*)"([^>]*)>([0-9]+)</text>', picture)
    return [(float(x), float(y), int(text), "bold" in style) for x, y, style, text in found]


def test_wrap_around_leads_to_the_numbered_nodes() -> None:
    """The numbers at the border of the picture of a torus are the nodes behind wrap-around."""
    torus, drawn = tf.Torus(3, 4), numbers(terms.torus())
    nodes = [(x, y, node) for x, y, node, is_node in drawn if is_node]
    ends = [(x, y, node) for x, y, node, is_node in drawn if not is_node]
    assert sorted(node for _, _, node in nodes) == [*range(12)]
    assert len(ends) == 2 * (3 + 4)
    for x, y, end in ends:
        near_x, near_y, node = min(nodes, key=lambda at: abs(at[0] - x) + abs(at[1] - y))
        axis, distance = (1, x - near_x) if abs(x - near_x) > abs(y - near_y) else (0, y - near_y)
        port = torus.port(f"{'+' if distance > 0 else '-'}{axis}")
        assert torus.neighbours[node][port] == end


def test_the_enlarged_nodes_are_neighbours() -> None:
    """The picture of a torus names the right nodes and arcs beside the enlarged nodes."""
    torus, drawn = tf.Torus(3, 4), texts(terms.torus())
    assert torus.neighbours[5][torus.port("+1")] == 6
    assert torus.neighbours[6][torus.port("-1")] == 5
    assert {"arc 5:+1", "arc 6:-1", "port +1 of node 5", "port -1 of node 6"} <= {*drawn}
    assert f"port +0, to node {torus.neighbours[5][torus.port('+0')]}" in drawn
