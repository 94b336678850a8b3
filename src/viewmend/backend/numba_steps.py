"""Steps of a Fourier transform of whole rows, in place.

A row holds the real parts of its numbers in one run of columns and the imaginary parts in another;
``columns = (re, im, width)`` says where both begin. With ``re`` and ``im`` exchanged, a transform
becomes the conjugate one. A step of radix ``r`` replaces ``r`` rows, each turned by a root of one,
by their transform. Frequencies stay where the steps leave them, since the way back starts there
and takes the steps backwards.

Nothing may be contracted or taken in another order here: how the compiler does it depends on what
it inlines, and that on what it finds in its cache, so that a second run would have other digits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["backward", "forward", "parts"]


@njit(cache=True, nogil=True)
def forward(Y, columns, group, stride, frequencies, roots, radices):  # type: ignore[no-untyped-def]
    """Steps of all radices on a group of rows, ``stride`` apart, as many as their product.

    Parameters
    ----------
    Y : array (n, n_columns)
    columns : tuple of int
    group : int
        Groups are numbered by their first rows.
    stride : int
    frequencies : array (n,) of int
        Of every row after all steps of the transform. A block of rows that holds the frequencies
        ``f`` modulo something is cut into ``r`` blocks of finer residues, and row ``s`` of the
        ``r`` is turned by ``f`` times its distance from the first.
    roots : complex array (n,)
        ``exp(-2 pi i k / n)``.
    radices : array of int
    """
    size = radices.prod()
    top = group // stride * size * stride
    first = top + group % stride
    length = size
    for r in radices:
        length //= r
        turns = np.empty(r, dtype=roots.dtype)
        for at in range(0, size, r * length):
            turn = frequencies[top + at * stride] * length * stride
            for s in range(r):
                turns[s] = roots[turn * s]
            for i in range(at, at + length):
                _step(Y, columns, first + stride * i, stride * length, turns, roots)


@njit(cache=True, nogil=True)
def backward(Y, columns, group, stride, roots, radices):  # type: ignore[no-untyped-def]
    """The steps of `forward` from the last to the first, times the product of the radices.

    Its ``columns`` are to be exchanged: turns and steps are those of the conjugate transform.
    """
    size = radices.prod()
    offset = group % stride
    first = group // stride * size * stride + offset
    length = 1
    for r in radices[::-1]:
        turns = np.empty(r, dtype=roots.dtype)
        for i in range(length):
            turn = (offset + stride * i) * (roots.size // (r * length * stride))
            for s in range(r):
                turns[s] = roots[turn * s]
            for at in range(i, size, r * length):
                _step(Y, columns, first + stride * at, stride * length, turns, roots)
        length *= r


@njit(cache=True, nogil=True)
def parts(Y, columns, i):  # type: ignore[no-untyped-def]
    """Real and imaginary parts of a row."""
    re, im, width = columns
    return Y[i, re : re + width], Y[i, im : im + width]


@njit(cache=True, nogil=True)
def _step(Y, columns, first, step, turns, roots):  # type: ignore[no-untyped-def]
    """Transform the rows ``first + step s``, as many as there are turns, after turning them."""
    if turns.size == 4:
        _step_4(Y, columns, first, step, turns)
    elif turns.size == 5:
        _step_5(Y, columns, first, step, turns, roots)
    elif turns.size == 2:
        _step_2(Y, columns, first, step, turns)
    elif turns.size == 3:
        _step_3(Y, columns, first, step, turns, roots)
    else:
        _step_odd(Y, columns, first, step, turns, roots)


@njit(cache=True, nogil=True)
def _quarter(z):  # type: ignore[no-untyped-def]
    """``-i z``."""
    return complex(z.imag, -z.real)


@njit(cache=True, nogil=True)
def _times(factor, z):  # type: ignore[no-untyped-def]
    """A real multiple, without the products by zero of a complex one."""
    return complex(factor * z.real, factor * z.imag)


@njit(cache=True, nogil=True)
def _step_2(Y, columns, first, step, turns):  # type: ignore[no-untyped-def]
    a_re, a_im = parts(Y, columns, first)
    b_re, b_im = parts(Y, columns, first + step)
    turn = turns[1]
    for j in range(a_re.size):
        a, b = complex(a_re[j], a_im[j]), turn * complex(b_re[j], b_im[j])
        a_re[j], a_im[j] = (a + b).real, (a + b).imag
        b_re[j], b_im[j] = (a - b).real, (a - b).imag


@njit(cache=True, nogil=True)
def _step_3(Y, columns, first, step, turns, roots):  # type: ignore[no-untyped-def]
    a_re, a_im = parts(Y, columns, first)
    b_re, b_im = parts(Y, columns, first + step)
    c_re, c_im = parts(Y, columns, first + 2 * step)
    turn_1, turn_2 = turns[1], turns[2]
    root = roots[roots.size // 3]
    for j in range(a_re.size):
        a = complex(a_re[j], a_im[j])
        b, c = turn_1 * complex(b_re[j], b_im[j]), turn_2 * complex(c_re[j], c_im[j])
        even, odd = a + _times(root.real, b + c), _times(root.imag, _quarter(c - b))
        a_re[j], a_im[j] = (a + b + c).real, (a + b + c).imag
        b_re[j], b_im[j] = (even + odd).real, (even + odd).imag
        c_re[j], c_im[j] = (even - odd).real, (even - odd).imag


@njit(cache=True, nogil=True)
def _step_4(Y, columns, first, step, turns):  # type: ignore[no-untyped-def]
    a_re, a_im = parts(Y, columns, first)
    b_re, b_im = parts(Y, columns, first + step)
    c_re, c_im = parts(Y, columns, first + 2 * step)
    d_re, d_im = parts(Y, columns, first + 3 * step)
    turn_1, turn_2, turn_3 = turns[1], turns[2], turns[3]
    for j in range(a_re.size):
        a, b = complex(a_re[j], a_im[j]), turn_1 * complex(b_re[j], b_im[j])
        c, d = turn_2 * complex(c_re[j], c_im[j]), turn_3 * complex(d_re[j], d_im[j])
        even, odd, total, gap = b + d, _quarter(b - d), a + c, a - c
        a_re[j], a_im[j] = (total + even).real, (total + even).imag
        b_re[j], b_im[j] = (gap + odd).real, (gap + odd).imag
        c_re[j], c_im[j] = (total - even).real, (total - even).imag
        d_re[j], d_im[j] = (gap - odd).real, (gap - odd).imag


@njit(cache=True, nogil=True)
def _step_5(Y, columns, first, step, turns, roots):  # type: ignore[no-untyped-def]
    a_re, a_im = parts(Y, columns, first)
    b_re, b_im = parts(Y, columns, first + step)
    c_re, c_im = parts(Y, columns, first + 2 * step)
    d_re, d_im = parts(Y, columns, first + 3 * step)
    e_re, e_im = parts(Y, columns, first + 4 * step)
    turn_1, turn_2, turn_3, turn_4 = turns[1], turns[2], turns[3], turns[4]
    root_1, root_2 = roots[roots.size // 5], roots[2 * (roots.size // 5)]
    for j in range(a_re.size):
        a = complex(a_re[j], a_im[j])
        b, e = turn_1 * complex(b_re[j], b_im[j]), turn_4 * complex(e_re[j], e_im[j])
        c, d = turn_2 * complex(c_re[j], c_im[j]), turn_3 * complex(d_re[j], d_im[j])
        sum_1, sum_2, gap_1, gap_2 = b + e, c + d, _quarter(e - b), _quarter(d - c)
        even_1 = a + _times(root_1.real, sum_1) + _times(root_2.real, sum_2)
        even_2 = a + _times(root_2.real, sum_1) + _times(root_1.real, sum_2)
        odd_1 = _times(root_1.imag, gap_1) + _times(root_2.imag, gap_2)
        odd_2 = _times(root_2.imag, gap_1) - _times(root_1.imag, gap_2)
        a_re[j], a_im[j] = (a + sum_1 + sum_2).real, (a + sum_1 + sum_2).imag
        b_re[j], b_im[j] = (even_1 + odd_1).real, (even_1 + odd_1).imag
        c_re[j], c_im[j] = (even_2 + odd_2).real, (even_2 + odd_2).imag
        d_re[j], d_im[j] = (even_2 - odd_2).real, (even_2 - odd_2).imag
        e_re[j], e_im[j] = (even_1 - odd_1).real, (even_1 - odd_1).imag


@njit(cache=True, nogil=True)
def _step_odd(Y, columns, first, step, turns, roots):  # type: ignore[no-untyped-def]
    """Any odd radix: rows ``s`` and ``-s`` meet the same roots, but for a sign."""
    r, width = turns.size, columns[2]
    sums, gaps = _sums_and_gaps(Y, columns, first, step, turns)
    a_re, a_im = parts(Y, columns, first)
    even, odd = np.empty_like(sums[0]), np.empty_like(sums[0])
    for p in range(1, r // 2 + 1):
        even[:width], even[width:], odd[:] = a_re, a_im, 0
        for s in range(1, r // 2 + 1):
            root = roots[roots.size // r * (s * p % r)]
            for j in range(even.size):
                even[j] += root.real * sums[s - 1, j]
                odd[j] -= root.imag * gaps[s - 1, j]
        b_re, b_im = parts(Y, columns, first + p * step)
        c_re, c_im = parts(Y, columns, first + (r - p) * step)
        for j in range(width):
            b_re[j], b_im[j] = even[j] + odd[j], even[width + j] + odd[width + j]
            c_re[j], c_im[j] = even[j] - odd[j], even[width + j] - odd[width + j]
    for s in range(r // 2):
        for j in range(width):
            a_re[j] += sums[s, j]
            a_im[j] += sums[s, width + j]


@njit(cache=True, nogil=True)
def _sums_and_gaps(Y, columns, first, step, turns):  # type: ignore[no-untyped-def]
    """Sums, and ``-i`` times differences, of the turned rows ``s`` and ``-s``."""
    r, width = turns.size, columns[2]
    sums = np.empty((r // 2, 2 * width), dtype=Y.dtype)
    gaps = np.empty_like(sums)
    for s in range(1, r // 2 + 1):
        b_re, b_im = parts(Y, columns, first + s * step)
        c_re, c_im = parts(Y, columns, first + (r - s) * step)
        turn_b, turn_c = turns[s], turns[r - s]
        sum_s, gap_s = sums[s - 1], gaps[s - 1]
        for j in range(width):
            b, c = turn_b * complex(b_re[j], b_im[j]), turn_c * complex(c_re[j], c_im[j])
            gap = _quarter(b - c)
            sum_s[j], sum_s[width + j] = (b + c).real, (b + c).imag
            gap_s[j], gap_s[width + j] = gap.real, gap.imag
    return sums, gaps
