"""A fixture for all tests of proofs."""

import pytest


@pytest.fixture(autouse=True)
def _folder_of_its_own(tmp_path, monkeypatch):
    """Run each test in a folder of its own, because a refuted proof writes its waves to the working
    folder.
    """
    monkeypatch.chdir(tmp_path)
