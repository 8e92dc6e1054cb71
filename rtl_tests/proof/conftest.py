"""A fixture for all tests of proofs."""

import pytest


@pytest.fixture(autouse=True)
def _folder_of_its_own(tmp_path, monkeypatch):
    """Run each test in its own folder, because a refuted proof writes waves to that folder."""
    monkeypatch.chdir(tmp_path)
