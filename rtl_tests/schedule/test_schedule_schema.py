"""The JSON Schema of schedule files: what it accepts is what is read."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schedules_by_hand import (
    SCHEDULES,
    content,
)

from torusfabric.errors import InputError
from torusfabric.schedule.file import save
from torusfabric.schedule.parsing import parse_schedule
from torusfabric.schedule.schema import schema

ODD = st.recursive(
    st.sampled_from([None, True, 0, 1, 5, -1, 1.0, 10**30, "all", "+0", "path"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)

ENTRY = st.fixed_dictionaries(
    {"path": st.just([0, 1]) | ODD, "blocks": st.sampled_from(["all", [[0, 0]]]) | ODD},
    optional={"via": st.just(["+1"]) | ODD, "more": ODD},
)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.lists(ENTRY | ODD, max_size=2) | ODD, max_size=2))
def test_files_are_judged_as_by_the_schema(rounds):
    """What is read keeps to the schema; what does not is refused, in one line."""
    data = content(rounds=rounds)
    faults = list(Draft202012Validator(schema()).iter_errors(data))
    try:
        parse_schedule(data)
    except InputError as error:
        message = str(error)
    else:
        assert not faults
        message = ""
    assert "\n" not in message


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.algorithm + str(s.collective))
def test_files_keep_to_the_schema(schedule, tmp_path):
    """What is written is valid in the eyes of any validator."""
    Draft202012Validator.check_schema(schema())
    save(schedule, tmp_path / "plan.json")
    data = json.loads((tmp_path / "plan.json").read_text())
    Draft202012Validator(schema()).validate(data)
