"""A fixture for all tests of sweeps."""

import pytest


@pytest.fixture
def write(tmp_path):
    """A function that writes a sweep; returns its path."""

    def make(text, name="grid.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return make
