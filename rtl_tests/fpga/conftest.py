"""A fixture that shares build plans between tests, because planning takes most of their time."""

import sys

import pytest

from torusfabric.fpga.board.plan import plan_build

_PLANS = {}


def _plan_once(fabric, board, **options):
    """Return the plan of a build, made once for each fabric, board and set of options."""
    key = fabric.digest, repr(board), repr(sorted(options.items()))
    if key not in _PLANS:
        _PLANS[key] = plan_build(fabric, board, **options)
    return _PLANS[key]


@pytest.fixture
def kept_plans(monkeypatch):
    """Let builds of different tests share the plans of equal fabrics."""
    for user in ("build", "run"):
        monkeypatch.setattr(sys.modules[f"torusfabric.fpga.board.{user}"], "plan_build", _plan_once)
