"""Lists of schedules: one alone is what it is without a list, several are of any length."""

import pytest

import torusfabric as tf
from torusfabric.errors import InputError


@pytest.mark.parametrize("lengths", [{}, {"flits": 3}, {"max_flits": 3}])
def test_a_list_of_one_is_that_one(lengths):
    schedule = tf.plan("3x3", "allgather")
    listed, alone = tf.compile([schedule], **lengths), tf.compile(schedule, **lengths)
    assert listed.digest == alone.digest
    assert listed.any_length is ("max_flits" in lengths)


def test_several_are_of_any_length():
    plans = [tf.plan("3x3", name) for name in ("allgather", "broadcast")]
    assert tf.compile(plans, flits=3).any_length


@pytest.mark.parametrize("schedules", [[], [None]])
def test_a_list_without_schedules(schedules):
    with pytest.raises(InputError, match="Schedules must be at least one schedule"):
        tf.compile(schedules)
