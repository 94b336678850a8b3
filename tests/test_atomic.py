"""Files that are replaced when they are whole, whatever happens meanwhile."""

import os
import stat
import threading

import pandas as pd
import pytest

from viewmend.cli.answers import write_sample_table
from viewmend.report.html import write_page
from viewmend.storage import atomic
from viewmend.storage.atomic import replacing, write_text


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    return path


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.posix
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o444, 0o755])
def test_a_file_keeps_its_permissions(path, permissions):
    path.chmod(permissions)
    with replacing(path) as stream:
        (draft,) = path.parent.glob("*.partial")
        # Nobody may read in the draft what they may not read in the file.
        assert mode(draft) & ~permissions == 0
        stream.write(b"new")
    assert mode(path) == permissions
    assert path.read_text() == "new"


@pytest.mark.posix
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o640


@pytest.mark.posix
def test_a_link_stays_and_the_file_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link", tmp_path / "there" / "file"
    link.symlink_to(target)
    for text in ("first", "second"):
        write_text(link, text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert names(tmp_path / "there") == ["file"]


@pytest.mark.posix
def test_a_planted_link_is_not_followed(path, monkeypatch):
    class Known:
        hex = "known"

    monkeypatch.setattr(atomic, "uuid4", Known)
    victim = path.with_name("victim")
    victim.write_text("untouched")
    path.with_name("file.known.partial").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_text(path, "new")
    assert victim.read_text() == "untouched"
    assert path.read_text() == "old"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_file_as_it_was_and_nothing_beside_it(path, error):
    def write():
        with replacing(path) as stream:
            stream.write(b"half of")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "old"
    assert names(path.parent) == ["file"]


def test_of_two_that_write_at_once_the_last_one_stays(path):
    with replacing(path) as first:
        first.write(b"first")
        with replacing(path) as second:
            second.write(b"second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert names(path.parent) == ["file"]


def test_a_long_name_leaves_room_for_that_of_the_draft(tmp_path):
    path = tmp_path / ("x" * 250)
    write_text(path, "new")
    assert path.read_text() == "new"


def test_a_pipe_is_written_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    # Where the pipe is replaced, nobody ever writes to it.
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_text(pipe, "through")
    reader.join(timeout=20)
    assert read == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


class Unprintable:
    def __str__(self):
        raise KeyboardInterrupt


def test_predictions_that_end_half_way_leave_the_last_ones(path):
    table = pd.DataFrame({"class": ["a"] * 1000 + [Unprintable()]})
    with pytest.raises(KeyboardInterrupt):
        write_sample_table(table, path)
    assert path.read_text() == "old"


def test_a_page_that_cannot_be_written_leaves_the_last_one(path, monkeypatch):
    def fail(_descriptor):
        raise OSError("disk full")

    monkeypatch.setattr("viewmend.storage.atomic.os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_page(path, "new")
    assert path.read_text() == "old"
