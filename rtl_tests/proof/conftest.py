"""What tests of proofs share."""

import pytest


@pytest.fixture(autouse=True)
def _folder_of_its_own(tmp_path, monkeypatch):
    """Where the waves of what does not hold are written."""
    monkeypatch.chdir(tmp_path)
