from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from learngraph_kernel.errors import BadInput
from learngraph_kernel.store.artifacts import CHUNK, ArtifactStore
from learngraph_kernel.store.errors import ArtifactCorrupt, ArtifactMissing

ABSENT = "0" * 64


@pytest.fixture
def artifacts(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts")


def leftovers(artifacts: ArtifactStore) -> list[Path]:
    return list((artifacts.root / "tmp").iterdir()) if (artifacts.root / "tmp").exists() else []


def flip_a_byte(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


@pytest.mark.parametrize("data", [b"", b"x", b"abc" * CHUNK])
def test_what_is_put_comes_back_under_its_hash(artifacts: ArtifactStore, data: bytes) -> None:
    name = artifacts.put(data)
    assert name == hashlib.sha256(data).hexdigest()
    assert artifacts.read(name) == data
    with artifacts.open(name) as stream:
        assert stream.read() == data
    assert artifacts.verify(name) == artifacts.size(name) == len(data)
    assert name in artifacts
    assert leftovers(artifacts) == []


def test_the_layout_is_the_documented_one_and_read_only(artifacts: ArtifactStore) -> None:
    name = artifacts.put(b"x")
    assert artifacts.path(name) == artifacts.root / "sha256" / name[:2] / name
    assert stat.S_IMODE(artifacts.path(name).stat().st_mode) == 0o444


def test_json_is_stored_canonically(artifacts: ArtifactStore) -> None:
    name = artifacts.put_json({"b": 1.0, "a": ["é"]})
    assert artifacts.read(name) == '{"a":["é"],"b":1}'.encode()
    assert artifacts.read_json(name) == {"a": ["é"], "b": 1}


def test_reading_json_that_is_none_says_so(artifacts: ArtifactStore) -> None:
    with pytest.raises(BadInput, match="not JSON"):
        artifacts.read_json(artifacts.put(b"\xff"))


def test_a_streamed_artifact_has_hash_and_size(artifacts: ArtifactStore) -> None:
    with artifacts.writer() as out:
        out.write(b"one")
        out.write(memoryview(b"two"))
        assert out.tell() == 6
    assert (out.sha256, out.size) == (hashlib.sha256(b"onetwo").hexdigest(), 6)
    assert artifacts.read(out.sha256) == b"onetwo"


def test_a_writer_that_fails_leaves_nothing(artifacts: ArtifactStore) -> None:
    def interrupted() -> None:
        with artifacts.writer() as out:
            out.write(b"half")
            raise RuntimeError("query died")

    with pytest.raises(RuntimeError, match="query died"):
        interrupted()
    assert list(artifacts.iterate()) == []
    assert leftovers(artifacts) == []


def test_an_error_of_the_block_is_not_mistaken_for_ours(artifacts: ArtifactStore) -> None:
    with pytest.raises(FileNotFoundError), artifacts.writer():
        Path("/no/such/file").read_bytes()


@pytest.mark.parametrize("move", [False, True])
def test_a_file_is_adopted(artifacts: ArtifactStore, tmp_path: Path, move: bool) -> None:
    source = tmp_path / "snapshot.arrow"
    data = os.urandom(CHUNK + 7)
    source.write_bytes(data)
    assert artifacts.read(artifacts.adopt(source, move=move)) == data
    assert source.exists() is not move
    assert leftovers(artifacts) == []


def test_adopting_by_move_what_is_there_already_takes_the_file_away(artifacts: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "again").write_bytes(b"same")
    name = artifacts.put(b"same")
    assert artifacts.adopt(tmp_path / "again", move=True) == name
    assert not (tmp_path / "again").exists()


def test_adopting_a_missing_file_is_bad_input(artifacts: ArtifactStore, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        artifacts.adopt(tmp_path / "nowhere")


@pytest.mark.parametrize("at", [0, CHUNK, 2 * CHUNK - 1])
def test_a_flipped_byte_is_named_by_every_way_of_reading(artifacts: ArtifactStore, at: int) -> None:
    name = artifacts.put(bytes(2 * CHUNK))
    flip_a_byte(artifacts.path(name), at)
    for read in (artifacts.read, artifacts.verify, lambda it: artifacts.open(it).read()):
        with pytest.raises(ArtifactCorrupt, match=name) as caught:
            read(name)
        assert caught.value.remedy is not None


def test_a_stream_is_not_judged_before_its_end(artifacts: ArtifactStore) -> None:
    name = artifacts.put(bytes(3 * CHUNK))
    flip_a_byte(artifacts.path(name), 0)
    with artifacts.open(name) as stream:
        assert len(stream.read(10)) == 10
        with pytest.raises(ArtifactCorrupt):
            stream.read()


def test_a_truncated_artifact_is_healed_by_putting_it_again(artifacts: ArtifactStore) -> None:
    name = artifacts.put(b"whole")
    artifacts.path(name).chmod(0o644)
    artifacts.path(name).write_bytes(b"")
    assert artifacts.read(artifacts.put(b"whole")) == b"whole"


def test_a_missing_artifact_says_what_to_do(artifacts: ArtifactStore) -> None:
    for read in (artifacts.read, artifacts.open, artifacts.path, artifacts.size, artifacts.verify):
        with pytest.raises(ArtifactMissing, match="restore it"):
            read(ABSENT)
    assert ABSENT not in artifacts


@pytest.mark.parametrize("name", ["", "abc", "../../etc/passwd", "A" * 64, "0" * 63 + "\n", "٣" * 64])
def test_what_is_no_name_is_refused(artifacts: ArtifactStore, name: str) -> None:
    with pytest.raises(BadInput, match="not the name"):
        artifacts.path(name)
    assert name not in artifacts


def test_all_names_are_listed(artifacts: ArtifactStore) -> None:
    names = {artifacts.put(bytes([number])) for number in range(30)}
    assert set(artifacts.iterate()) == names
    assert list(ArtifactStore(artifacts.root / "none").iterate()) == []


def test_many_writers_of_the_same_content_agree(artifacts: ArtifactStore) -> None:
    names: list[str] = []

    def write() -> None:
        for number in range(20):
            with artifacts.writer() as out:
                out.write(bytes([number]) * 1000)
            names.append(out.sha256)

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names) == 120
    assert set(artifacts.iterate()) == set(names)
    assert all(artifacts.verify(name) == 1000 for name in set(names))
    assert leftovers(artifacts) == []


def test_a_large_file_is_streamed_in_little_memory(tmp_path: Path) -> None:
    """Storing and reading 160 MB in a process that may have far less (address space) than that."""
    script = """
import resource, sys
from pathlib import Path
from learngraph_kernel.store.artifacts import ArtifactStore
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limit = used + (64 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
store = ArtifactStore(Path(sys.argv[1]) / "artifacts")
name = store.adopt(Path(sys.argv[1]) / "large")
with store.open(name) as stream:
    while stream.read(1 << 20):
        pass
print(store.verify(name))
"""
    with (tmp_path / "large").open("wb") as file:
        file.truncate(160 << 20)
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (str(160 << 20), "")
