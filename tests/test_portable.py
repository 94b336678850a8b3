"""What other systems have in place of POSIX, by letting the parts of POSIX be absent."""

import ctypes
import errno
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from viewmend import memory
from viewmend.bench import processes
from viewmend.bench import store as stores
from viewmend.bench.runs import RunKey
from viewmend.bench.store import ResultStore
from viewmend.storage import locks


class ByteLocks:
    """Locks as ``msvcrt`` has them: of bytes at the place of a handle, freed when it is closed."""

    LK_NBLCK = 2

    def __init__(self):
        self.held = {}

    def locking(self, handle, mode, n_bytes):
        assert (mode, n_bytes) == (self.LK_NBLCK, 1)
        status = os.fstat(handle)
        byte = status.st_dev, status.st_ino, os.lseek(handle, 0, os.SEEK_CUR)
        holder = self.held.get(byte)
        if holder is not None and holder != handle and _is_open(holder):
            raise OSError(errno.EACCES, "locked")
        self.held[byte] = handle


def _is_open(handle):
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True


@pytest.fixture
def windows_locks(monkeypatch):
    found = ByteLocks()
    monkeypatch.setattr(locks, "fcntl", None)
    monkeypatch.setattr(locks, "msvcrt", found)
    return found


KEY = RunKey("fit", "honest", "Birds", 0.3, 0.05, "Able", (), 0)


def test_a_lock_of_windows_keeps_others_off_and_leaves_the_content_alone(windows_locks, tmp_path):
    path = tmp_path / "file"
    path.write_text("content")
    with path.open("rb") as first, path.open("rb") as second:
        first.seek(3)
        assert locks.try_lock(first.fileno())
        assert not locks.try_lock(second.fileno())
        assert first.read() == b"tent"
        ((_, _, place),) = windows_locks.held
        assert place > 2**32
    assert path.stat().st_size == 7


def test_waiting_for_a_lock_of_windows_asks_until_it_is_free(windows_locks, tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.touch()
    with path.open("rb") as waiting:
        first = path.open("rb")
        locks.try_lock(first.fileno())
        naps = []

        def nap(seconds):
            naps.append(seconds)
            if len(naps) == 3:
                first.close()

        monkeypatch.setattr(locks.time, "sleep", nap)
        locks.wait_for_lock(waiting.fileno())
    assert len(naps) == 3


def test_claims_of_a_store_hold_with_locks_of_windows(windows_locks, tmp_path):
    store, other = ResultStore(tmp_path), ResultStore(tmp_path)
    with store.claim(KEY) as mine, other.claim(KEY) as theirs:
        assert mine
        assert not theirs
        assert other.running() == [KEY]
    with other.claim(KEY) as theirs:
        assert theirs
    assert list(store.claims.iterdir()) == []


def test_a_claim_is_removed_after_its_end_where_open_files_cannot_be(
    windows_locks, tmp_path, monkeypatch
):
    """As on Windows, also where the work ends with an error."""
    unlink = stores.Path.unlink

    def refusing(path, missing_ok=False):
        if any(_is_open(handle) for handle in windows_locks.held.values()):
            raise PermissionError(errno.EACCES, "in use")
        unlink(path, missing_ok)

    monkeypatch.setattr(stores.Path, "unlink", refusing)
    store = ResultStore(tmp_path)
    with pytest.raises(ZeroDivisionError), store.claim(KEY):
        raise ZeroDivisionError
    assert list(store.claims.iterdir()) == []


class Kernel:
    """The calls of Windows that are used, with a machine of 16 GiB."""

    def __init__(self, answers=True):
        self.answers, self.waited = answers, []

    def GlobalMemoryStatusEx(self, pointer):
        status = ctypes.cast(pointer, ctypes.POINTER(memory._MemoryStatus)).contents
        assert status.length == ctypes.sizeof(status) == 64
        status.physical = 2**34
        return self.answers

    def OpenProcess(self, access, _inherit, process):
        assert access == 0x00100000
        return 77 if process == 1234 else 0

    def WaitForSingleObject(self, handle, milliseconds):
        self.waited.append((handle, milliseconds))


@pytest.fixture
def kernel(monkeypatch):
    made = Kernel()
    windll = types.SimpleNamespace(kernel32=made)
    monkeypatch.setattr(ctypes, "windll", windll, raising=False)
    monkeypatch.setattr(memory, "GROUPS", Path("of Linux alone"))
    return made


def test_memory_is_asked_of_windows_where_there_is_no_sysconf(kernel, monkeypatch):
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert memory.machine_memory() == 2**34


def test_work_is_not_refused_where_the_memory_is_not_known(kernel, monkeypatch):
    monkeypatch.delattr(os, "sysconf", raising=False)
    kernel.answers = False
    assert memory.machine_memory() == sys.maxsize
    monkeypatch.delattr(ctypes, "windll")
    memory.check_memory(1e15, "a fit", "for much", "take less")


@pytest.mark.parametrize(
    ("line", "files", "limit"),
    [
        ("0::/job/step", {"job/step/memory.max": "max", "job/memory.max": "3000\n"}, 3000),
        ("0::/job/step", {"job/step/memory.max": "2000", "job/memory.max": "3000"}, 2000),
        # A container sees its own group as the root.
        ("0::/", {"memory.max": "1000"}, 1000),
        ("4:memory:/host/name", {"memory.limit_in_bytes": "1500"}, 1500),
        ("4:memory:/job", {"job/memory.limit_in_bytes": "9223372036854771712"}, 10**9),
        ("9:cpu:/job", {"job/memory.max": "1000"}, 10**9),
        ("0::/../..", {}, 10**9),
    ],
)
def test_memory_is_what_the_groups_of_a_process_leave_it(monkeypatch, tmp_path, line, files, limit):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "groups").write_text(f"12:devices:/\n{line}\n")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    roots = {kind: (tmp_path, name) for kind, (_, name) in memory.GROUP_FILES.items()}
    monkeypatch.setattr(memory, "GROUP_FILES", roots)
    monkeypatch.setattr(memory, "_posix_memory", lambda: 10**9)
    assert memory.machine_memory() == limit


def test_a_worker_on_windows_waits_for_its_parent(kernel, monkeypatch):
    ended = []
    monkeypatch.setattr(processes.sys, "platform", "win32")
    monkeypatch.setattr(processes.os, "kill", lambda pid, signal: ended.append((pid, signal)))
    processes._watch(1234)
    assert kernel.waited == [(77, 0xFFFFFFFF)]
    # One that is gone already ends its worker at once.
    processes._watch(4321)
    assert len(kernel.waited) == 1
    assert ended == [(os.getpid(), processes.END)] * 2


def test_the_library_loads_without_the_parts_of_posix(tmp_path):
    """In a fresh process: what is absent on Windows is taken away before anything is loaded."""
    program = """
import os, signal, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("register_at_fork", "sysconf", "fchmod", "fork", "getuid"):
    if hasattr(os, name):
        delattr(os, name)
if hasattr(signal, "SIGKILL"):
    del signal.SIGKILL
import viewmend.bench.store, viewmend.bench.completion, viewmend.bench.processes
from viewmend.backend.threads import limited_threads, parallel_map
with limited_threads(2):
    assert list(parallel_map(abs, [-1, -2])) == [1, 2]
from viewmend.storage.atomic import write_text
from pathlib import Path
for text in ("one", "two"):
    write_text(Path("file"), text)
assert Path("file").read_text() == "two"
print("fine")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.stdout.strip() == "fine", done.stderr
