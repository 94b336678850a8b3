"""Edits of tables, NumPy archives and old MATLAB files by somebody who knows the format."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.io

from attacks.data_seeds import N_SAMPLES, labels, views
from viewmend.memory import machine_memory as memory

# Types of elements and of matrices in MATLAB files up to version 7.
MI_INT32, MI_UINT32, MI_DOUBLE, MI_MATRIX, MI_COMPRESSED = 5, 6, 9, 14, 15
MX_CELL, MX_SPARSE, MX_DOUBLE = 1, 5, 6
MIB = 2**20


def zeros_bomb(n_bytes: int, head: bytes = b"", wbits: int = 15) -> bytes:
    """A stream that inflates to ``head`` and ``n_bytes`` of zeros, in a thousandth of them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    begin = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return begin + block + again * (n_bytes // MIB - 1) + packer.flush()


def _header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    stream = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def _with_member(path: Path, member: bytes, name: str = "more.npy") -> None:
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, member)


def npz_huge_shape(path: Path, rng: np.random.Generator) -> None:
    shapes = [(2**40, 3), (2**62, 8), (-5, 3), (2**33, 2**33), (N_SAMPLES, 2**38)]
    _with_member(path, _header(shapes[rng.integers(len(shapes))]) + bytes(96))


def npz_odd_member(path: Path, rng: np.random.Generator) -> None:
    members = [
        b"plain text",
        _header((N_SAMPLES, 3), "|O") + bytes(300),
        _header((N_SAMPLES, 3), "<U1000000000"),
        b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000,
        b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"-" * 8999 + b"1",
        b"\x93NUMPY\x09\x00",
        _header((N_SAMPLES, 3)) + bytes(100),
        _header((N_SAMPLES, 3)) + bytes(3000),
    ]
    _with_member(path, members[rng.integers(len(members))])


def npz_odd_content(path: Path, rng: np.random.Generator) -> None:
    """Arrays that are arrays, and no views."""
    odd = [
        {"photo": np.zeros((0, 3))},
        {"photo": np.zeros((N_SAMPLES, 0))},
        {"photo": np.array([["a"] * 3] * N_SAMPLES)},
        {"photo": np.zeros((N_SAMPLES, 3), dtype="M8[D]")},
        {"photo": np.zeros((N_SAMPLES, 3), dtype=[("a", "f8")])},
        {"photo": np.full((N_SAMPLES, 3), 1e308)},
        {"photo": np.full((N_SAMPLES, 3), np.inf), "y": labels()},
        {"photo": np.ones((N_SAMPLES, 3)), "y": np.float64(3)},
        {"photo": np.ones((N_SAMPLES, 3)), "ids": np.zeros((N_SAMPLES, 2))},
        {"photo": np.ones((N_SAMPLES, 3)), "ids": np.arange(3)},
        {"photo": np.ones((N_SAMPLES, 3)), "y": np.ones((N_SAMPLES, 2))},
        {"photo": np.ones((N_SAMPLES, 3)), "y": np.zeros(N_SAMPLES, dtype=[("a", "f8")])},
        {"photo": np.ones((N_SAMPLES, 3)) * 1j},
    ]
    np.savez(path, **odd[rng.integers(len(odd))])


def npz_bomb(path: Path, _rng: np.random.Generator) -> None:
    """Zeros as large as the memory, in an archive that says so truly."""
    n_rows = memory() // 8 // MIB * MIB
    head = _header((n_rows, 1))
    packed = zeros_bomb(8 * n_rows, head, -15)
    size, name = 8 * n_rows + len(head), b"more.npy"
    extra = struct.pack("<HHQQ", 1, 16, size, len(packed))
    common = struct.pack("<HHHHHIIIHH", 45, 0, 8, 0, 0, 0, 2**32 - 1, 2**32 - 1, len(name), 20)
    local = b"PK\x03\x04" + common + name + extra + packed
    entry = b"PK\x01\x02" + struct.pack("<H", 45) + common + struct.pack("<HHHII", 0, 0, 0, 0, 0)
    entry += name + extra
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0)
    path.write_bytes(local + entry + end)


def element(kind: int, content: bytes) -> bytes:
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def matrix(kind: int, shape: tuple[int, ...], *parts: bytes, name: bytes = b"") -> bytes:
    flags = element(MI_UINT32, struct.pack("<II", kind, N_SAMPLES * 7))
    head = flags + element(MI_INT32, struct.pack(f"<{len(shape)}i", *shape)) + element(1, name)
    return element(MI_MATRIX, head + b"".join(parts))


def _doubles(values: np.ndarray) -> bytes:
    return element(MI_DOUBLE, np.asarray(values, dtype="<f8").ravel(order="F").tobytes())


def _sparse(ir: np.ndarray, jc: np.ndarray, shape: tuple[int, int] = (N_SAMPLES, 7)) -> bytes:
    rows = element(MI_INT32, ir.astype("<i4").tobytes())
    starts = element(MI_INT32, jc.astype("<i4").tobytes())
    return matrix(MX_SPARSE, shape, rows, starts, _doubles(np.ones(len(ir))))


def write_mat(path: Path, *cells: bytes, rng: np.random.Generator) -> None:
    """A file of version 5 with these cells, as they are or compressed."""
    begin = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    gnd = matrix(MX_DOUBLE, (N_SAMPLES, 1), _doubles(labels() + 1.0), name=b"gnd")
    X = matrix(MX_CELL, (1, len(cells)), *cells, name=b"X")
    if rng.integers(2):
        X = struct.pack("<II", MI_COMPRESSED, len(zlib.compress(X))) + zlib.compress(X)
    path.write_bytes(begin + X + gnd)


def mat_sparse(path: Path, rng: np.random.Generator) -> None:
    """Row numbers or starts of columns that lie outside."""
    sparse = scipy.sparse.csc_array(views()["count"])
    ir, jc = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    values = [2**30, -1, 10**6, -(2**31), 2**31 - 1]
    value = values[rng.integers(len(values))]
    if rng.integers(2):
        ir[rng.integers(len(ir))] = value
    else:
        jc[rng.integers(1, len(jc))] = value
        # Nothing stored in all, though columns say otherwise.
        jc[-1] = jc[-1] if rng.integers(2) else 0
    write_mat(path, _sparse(ir, jc), rng=rng)


def mat_huge(path: Path, rng: np.random.Generator) -> None:
    most = 2**31 - 1
    data = _doubles(np.ones(3))
    jc = np.zeros(8)
    cells = [
        matrix(MX_DOUBLE, (most, most), data),
        matrix(MX_CELL, (2**30, 2)),
        matrix(MX_CELL, (most, most)),
        matrix(2, (2**29, 3), element(MI_INT32, struct.pack("<i", 8)), element(1, b"a".ljust(8))),
        _sparse(np.zeros(0), jc, (most, 7)),
        _sparse(np.zeros(0), jc, (7, most)),
        element(MI_MATRIX, b"")[:4] + struct.pack("<I", 2**32 - 9),
        matrix(MX_DOUBLE, (-3, 5), data),
        matrix(MX_DOUBLE, (1,) * 40, data),
        matrix(17, (1, 1), data),
        matrix(16, (1, 1), matrix(MX_DOUBLE, (1, 1), data)),
    ]
    write_mat(path, cells[rng.integers(len(cells))], rng=rng)


def mat_deep(path: Path, rng: np.random.Generator) -> None:
    """Cells in cells in cells."""
    empty_name = element(1, b"")
    depth = [40, 2000, 50_000][rng.integers(3)]
    head = element(MI_UINT32, struct.pack("<II", MX_CELL, 0))
    head += element(MI_INT32, struct.pack("<ii", 1, 1)) + empty_name
    inner = matrix(MX_DOUBLE, (1, 1), _doubles(np.ones(1)))
    sizes = [len(inner) + (len(head) + 8) * level for level in range(depth)]
    tags = [struct.pack("<II", MI_MATRIX, len(head) + size) + head for size in reversed(sizes)]
    write_mat(path, b"".join(tags) + inner, rng=rng)


def mat_bomb(path: Path, _rng: np.random.Generator) -> None:
    """Many variables of zeros, each of which the format allows."""
    size = 2**32 - 2 * MIB
    begin = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    flags = element(MI_UINT32, struct.pack("<II", MX_DOUBLE, 0))
    flags += element(MI_INT32, struct.pack("<ii", size // 8, 1)) + element(1, b"X")
    head = struct.pack("<II", MI_MATRIX, len(flags) + 8 + size) + flags
    packed = zeros_bomb(size, head + struct.pack("<II", MI_DOUBLE, size))
    variable = struct.pack("<II", MI_COMPRESSED, len(packed)) + packed
    path.write_bytes(begin + variable * (1 + memory() // size))


def csv_wide(path: Path, _rng: np.random.Generator) -> None:
    """A wide header over many short rows, which a reader fills up."""
    header = "id\t" + "\t".join(f"c{j}" for j in range(30_000))
    path.write_text("\n".join([header, *(f"s{i}\t1" for i in range(300_000))]))


def csv_odd_cell(path: Path, rng: np.random.Generator) -> None:
    cells = ["9" * 5000, "1e999999", "\x00", '"', "\ud800", "nan", "-0", "0x10", "1_0", "=1+1", "∞"]
    cell = cells[rng.integers(len(cells))]
    lines = path.read_text().splitlines()
    row = int(rng.integers(len(lines)))
    separator = "," if path.suffix == ".csv" else "\t"
    parts = lines[row].split(separator)
    parts[rng.integers(len(parts))] = cell
    lines[row] = separator.join(parts)
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))


def csv_not_text(path: Path, rng: np.random.Generator) -> None:
    contents = [b"", b"\n" * 50, b"\xff\xfe", b"\xff\xfea", b"\x00" * 500, b'"' * 999, b"," * 2000]
    path.write_bytes(contents[rng.integers(len(contents))])


def not_a_file(path: Path, _rng: np.random.Generator) -> None:
    """A pipe that nobody writes into."""
    path.unlink()
    os.mkfifo(path)


def parquet_odd_type(path: Path, rng: np.random.Generator) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = [f"s{i}" for i in range(N_SAMPLES)]
    columns = [
        pa.array([[1.0, 2.0]] * N_SAMPLES),
        pa.array([{"a": 1}] * N_SAMPLES),
        pa.array([b"\xff\xfe"] * N_SAMPLES),
        pa.array([10**30] * N_SAMPLES, pa.decimal128(38, 0)),
        pa.array([2**62] * N_SAMPLES, pa.timestamp("us")),
        pa.array([2**62] * N_SAMPLES, pa.duration("us")),
        pa.array([None] * N_SAMPLES, pa.null()),
        pa.array([2**63 + 1] * N_SAMPLES, pa.uint64()),
        pa.array(["\x1b[31m"] * N_SAMPLES).dictionary_encode(),
        pa.array([True, None] * (N_SAMPLES // 2)),
        pa.array([float("nan")] * N_SAMPLES, pa.float16()),
    ]
    names = ["id", "c0", ["c1", "c0", "label", "id"][rng.integers(4)]]
    column = columns[rng.integers(len(columns))]
    table = pa.Table.from_arrays([pa.array(ids), pa.array(labels()), column], names)
    pq.write_table(table, path)


def parquet_bomb(path: Path, rng: np.random.Generator) -> None:
    """A long text said once and meant in every row, or more rows than fit."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if rng.integers(2):
        text = pa.DictionaryArray.from_arrays(
            np.zeros(memory() // MIB * 2, dtype=np.int32), pa.array(["x" * MIB])
        )
        pq.write_table(pa.table({"id": text}), path, store_schema=False)
        return
    rows = pa.DictionaryArray.from_arrays(np.zeros(5 * 10**7, dtype=np.int8), pa.array([1.0]))
    pq.write_table(pa.table({f"c{j}": rows for j in range(1)}), path, store_schema=False)


Edit = Callable[[Path, np.random.Generator], None]
