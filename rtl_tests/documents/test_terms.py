"""Pictures of terms agree with the networks and programs that they show."""

import re

import terms

import torusfabric as tf


def texts(picture: str) -> list[str]:
    """Return the words of a picture in their order."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture)


def test_rows_are_those_of_a_program() -> None:
    """The picture of rows shows modes, forms and rows of an engine on 4x4."""
    forms = tf.plan_forms("4x4", "allgather", max_flits=64)
    program = tf.compile([forms, tf.plan("4x4", "alltoall")], max_flits=64)
    drawn, first = texts(terms.program_rows()), 0
    for mode in program.modes:
        for number, form in enumerate(mode.forms):
            last = first + form.schedule.steps - 1
            at = drawn.index(f"{number}: {form.schedule.algorithm}")
            assert str(first) in drawn[at - 2 : at]
            assert {str(last), str(form.schedule.steps)} <= {*drawn[at:]}
            first = last + 1
            drawn = drawn[at + 1 :]


def test_wrap_around_leads_to_the_numbered_nodes() -> None:
    """The picture of a torus shows the right nodes at the ends of links, and the right arcs."""
    torus, drawn = tf.Torus(3, 4), texts(terms.torus())
    for node, port in ((3, "+1"), (4, "-1"), (9, "+0"), (2, "-0")):
        assert str(torus.neighbours[node][torus.port(port)]) in drawn
    assert torus.neighbours[5][torus.port("+1")] == 6
    assert torus.neighbours[6][torus.port("-1")] == 5
    assert f"port +0, to node {torus.neighbours[5][torus.port('+0')]}" in drawn
