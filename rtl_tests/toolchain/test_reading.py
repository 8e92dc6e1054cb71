"""Files from users are read up to a limit."""

import gzip
import tracemalloc

import numpy as np
import pytest

from torusfabric.errors import InputError
from torusfabric.toolchain import reading
from torusfabric.toolchain.reading import read_array, read_bytes, read_text


def test_plain_and_compressed(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"abc") + gzip.compress(b"def"))
    assert read_bytes(tmp_path / "a", "File") == b"abc"
    assert read_bytes(tmp_path / "a.gz", "File") == b"abcdef"


def test_a_bomb_is_not_unpacked_whole(tmp_path, monkeypatch):
    """A compressed file is refused once it unpacks to more than a hundred times its size."""
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(40):
            file.write(bytes(2**20))
    monkeypatch.setattr(reading, "SMALL", 2**20)
    tracemalloc.start()
    with pytest.raises(InputError) as info:
        read_bytes(path, "Schedule file")
    assert str(info.value) == (
        f"Schedule file {path} must unpack to at most 100 times its size or 1 MiB, not more"
    )
    assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    tracemalloc.stop()


def test_too_large(tmp_path):
    (tmp_path / "a").write_bytes(b"abcd")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"abcd"))
    assert read_bytes(tmp_path / "a", "File", most=4) == b"abcd"
    with pytest.raises(InputError, match=r"^File \S+/a must hold at most 3 bytes, not more$"):
        read_bytes(tmp_path / "a", "File", most=3)
    with pytest.raises(InputError, match=r"^File \S+ must unpack to at most 3 bytes, not more$"):
        read_bytes(tmp_path / "a.gz", "File", most=3)


def test_a_device_without_an_end():
    with pytest.raises(InputError, match=r"^File /dev/zero must hold at most 5 MiB, not more$"):
        read_bytes("/dev/zero", "File", most=5 * 2**20)


def test_what_is_no_text(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"^File \S+ must be text in UTF-8: "):
        read_text(tmp_path / "a", "File")
    with pytest.raises(InputError, match=r"^File must be a path without a byte of 0, not"):
        read_text("a\0b", "File")


def test_arrays(tmp_path):
    """A file with one array is read; wrong shapes, further bytes and archives are refused."""
    np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3))
    assert read_array(tmp_path / "a.npy", "Data").tolist() == [[0, 1, 2], [3, 4, 5]]
    raw = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "b.npy").write_bytes(
        raw.replace(b"(2, 3), }" + b" " * 15, b"(2000000000000, 3000), }")
    )
    with pytest.raises(InputError, match=r"^Data must be a readable .npy file, not \S+ \(not an a"):
        read_array(tmp_path / "b.npy", "Data")
    (tmp_path / "d.npy").write_bytes(raw + b"\0")
    with pytest.raises(InputError, match=r"^Data .*, not \S+ \(1 bytes more than its head says"):
        read_array(tmp_path / "d.npy", "Data")
    np.savez(tmp_path / "c.npz", a=np.zeros(2))
    with pytest.raises(InputError, match=r"^Data must be a readable .npy file, not \S+ \(not an a"):
        read_array(tmp_path / "c.npz", "Data")


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04",
        b"PK\x03\x04" + b"x" * 200,
        b"PK\x05\x06" + bytes(18),
        b"\x93NUMPY\x01\x00\x76\x00" + b"(" * 118,
        b"\x80\x04N.",
        b"",
    ],
)
def test_damaged_arrays(tmp_path, content):
    """A damaged array file is refused with one line."""
    path = tmp_path / "d.npy"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"^Data must be a readable \.npy file, not \S+ \(not an"):
        read_array(path, "Data")
