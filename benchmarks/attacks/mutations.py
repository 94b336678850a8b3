"""Damage to the bytes of any file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Damage = Callable[[bytes, np.random.Generator], bytes]


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The content after one to three kinds of damage."""
    for _ in range(rng.integers(1, 4)):
        content = DAMAGES[rng.integers(len(DAMAGES))](content, rng)
    return content


def _place(content: bytes, rng: np.random.Generator) -> tuple[int, int]:
    """Begin and end of a short stretch."""
    begin = int(rng.integers(len(content) + 1))
    return begin, min(begin + int(rng.integers(1, 65)), len(content))


def flip_bits(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for place in rng.integers(len(content), size=rng.integers(1, 9)) if content else ():
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut_end(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: rng.integers(len(content) + 1)]


def cut_out(content: bytes, rng: np.random.Generator) -> bytes:
    begin, end = _place(content, rng)
    return content[:begin] + content[end:]


def insert(content: bytes, rng: np.random.Generator) -> bytes:
    begin, end = _place(content, rng)
    return content[:begin] + rng.bytes(end - begin + 1) + content[begin:]


def blank(content: bytes, rng: np.random.Generator) -> bytes:
    begin, end = _place(content, rng)
    return content[:begin] + bytes([rng.choice([0, 255])]) * (end - begin) + content[end:]


def repeat(content: bytes, rng: np.random.Generator) -> bytes:
    begin, end = _place(content, rng)
    return content[:end] + content[begin:end] + content[end:]


def swap(content: bytes, rng: np.random.Generator) -> bytes:
    (a, b), (c, d) = sorted([_place(content, rng), _place(content, rng)])
    b = min(b, c)
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def odd_number(content: bytes, rng: np.random.Generator) -> bytes:
    """A number that is too large, negative or none at all in the place of eight or four bytes."""
    kind = [np.int32, np.int64, np.float64][rng.integers(3)]
    values = [-1, 2**31 - 1, -(2**31), 2**16, 1]
    number = np.array(values[rng.integers(len(values))]).astype(kind).tobytes()
    place = int(rng.integers(len(content) + 1)) & ~3
    return content[:place] + number + content[place + len(number) :]


DAMAGES: tuple[Damage, ...] = (
    flip_bits,
    flip_bits,
    cut_end,
    cut_out,
    insert,
    blank,
    repeat,
    swap,
    odd_number,
)
