"""Triton: on a GPU its kernels equal the agnostic ones, and a solve that of NumPy."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

from viewmend.backend import agnostic, dispatch, triton_fourier, triton_gpu  # noqa: E402
from viewmend.backend.namespace import array_namespace, to_numpy  # noqa: E402
from viewmend.core import solve  # noqa: E402

RNG = np.random.default_rng(0)
# A prime that transforms are slow at, an odd length, a power of two, one sample.
LENGTHS = [6 * 149, 81, 64, 1]


def arguments_of(name, n_views, n, m):
    graphs = RNG.dirichlet(np.full(m, 0.3), size=(n_views, n))
    noise = RNG.normal(size=(n_views, n, m))
    rows = RNG.permutation(n)[: max(1, n // 3)]
    return {
        "imputed_rows": (noise[0], graphs[0], rows, graphs[0][rows], 0.7, 0.3),
        "best_response_rows": (graphs, np.abs(noise[0]), RNG.random(n_views), 1.3),
        "ascend": (noise, graphs, noise[::-1].copy(), 0.7),
        "project_simplex_rows": (3 * noise[0],),
        "shrink_fourier": (noise, np.linspace(0, 4, n // 2 + 1)),
    }[name]


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-11), ("float32", 2e-4)])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("n_views", [1, 2, 3, 6])
@pytest.mark.parametrize("name", triton_gpu.KERNELS)
def test_kernel_equals_the_agnostic_one(name, n_views, n, dtype, tol):
    arguments = arguments_of(name, n_views, n, m=30)
    placed = [place(a, dtype) if np.ndim(a) else a for a in arguments]
    if name == "best_response_rows":
        placed[2] = arguments[2]
    assert dispatch._kernel(name, placed[0]).func is triton_gpu.KERNELS[name]
    got = as_tuple(getattr(dispatch, name)(*placed))
    expected = as_tuple(getattr(agnostic, name)(*arguments, xp=array_namespace(arguments[0])))
    for one, other in zip(got, expected, strict=True):
        scale = max(1.0, np.abs(other).max())
        np.testing.assert_allclose(to_numpy(torch.as_tensor(one)), other, atol=tol * scale)


def place(array, dtype):
    kind = array.dtype if array.dtype.kind == "i" else dtype
    return torch.tensor(array.astype(kind), device="cuda")


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("n", [1, 2, 97, 126054, 10158, 5000, 149 * 149])
def test_factors_are_coprime_and_multiply_to_the_length(n):
    factors = triton_fourier.coprime_factors(n)
    assert math.prod(factors) == n
    for i, one in enumerate(factors):
        assert all(math.gcd(one, other) == 1 for other in factors[i + 1 :])


@pytest.mark.parametrize("n", [17 * 8, 894, 45, 2])
@pytest.mark.parametrize("large", [0, 1 << 28])
def test_table_transform_is_the_fourier_transform(n, large, monkeypatch):
    """Of packed columns: frequency and mirror image tell both of them apart."""
    monkeypatch.setattr(triton_fourier, "LARGE", large)
    plan = triton_fourier.frequency_plan(n, torch.device("cuda"))
    Y = torch.tensor(RNG.normal(size=(2, n, 6)), device="cuda")
    packed = to_numpy(Y)[:, :, ::2] + 1j * to_numpy(Y)[:, :, 1::2]
    Y_hat = to_numpy(triton_fourier.transform(Y, plan, Y.clone()))
    expected = np.fft.fft(packed, axis=1).transpose(0, 2, 1)
    firsts, mirrors = to_numpy(plan.firsts), to_numpy(plan.mirrors)
    frequencies = to_numpy(plan.frequencies)
    assert sorted(frequencies) == list(range(n // 2 + 1))
    for first, mirror, k in zip(firsts, mirrors, frequencies, strict=True):
        pair = {k, -k % n}
        found = [
            next(f for f in pair if np.allclose(Y_hat[..., place_], expected[..., f]))
            for place_ in (first, mirror)
        ]
        assert set(found) == pair
    back = triton_fourier.transform_back(
        torch.tensor(Y_hat, device="cuda"), plan, torch.empty_like(Y)
    )
    np.testing.assert_allclose(to_numpy(back), to_numpy(Y), atol=1e-12)


def test_large_views_are_shrunk_in_their_own_room(monkeypatch):
    Y = torch.tensor(RNG.normal(size=(3, 60, 8)), device="cuda")
    expected, expected_norms = dispatch.shrink_fourier(Y, 2.0)
    monkeypatch.setattr(triton_fourier, "LARGE", 0)
    G, norms = dispatch.shrink_fourier(Y, 2.0, out=Y)
    assert G.data_ptr() == Y.data_ptr()
    np.testing.assert_allclose(to_numpy(G), to_numpy(expected), atol=1e-12)
    np.testing.assert_allclose(to_numpy(norms), to_numpy(expected_norms), atol=1e-12)


def test_singular_slices_are_shrunk_to_finite_numbers():
    Y = torch.zeros((3, 16, 8), device="cuda", dtype=torch.float64)
    Y[0] = Y[1] = 1.0
    G, norms = dispatch.shrink_fourier(Y, 0.5)
    expected, expected_norms = agnostic.shrink_fourier(
        to_numpy(Y), 0.5, xp=array_namespace(np.ones(1))
    )
    np.testing.assert_allclose(to_numpy(G), expected, atol=1e-12)
    np.testing.assert_allclose(to_numpy(norms), expected_norms, atol=1e-12)


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-9), ("float32", 1e-3)])
def test_solve_agrees_with_numpy(make_problem, dtype, tol):
    problem = make_problem(n_samples=298, n_anchors=16)
    on_gpu = problem.converted(
        lambda array: (
            torch.tensor(array, device="cuda")
            if array.dtype == bool
            else torch.tensor(array.astype(dtype), device="cuda")
        )
    )
    expected, got = solve(problem, max_iter=8), solve(on_gpu, max_iter=8)
    np.testing.assert_allclose(to_numpy(got.F), expected.F, atol=tol)
    np.testing.assert_allclose(got.alpha, expected.alpha, atol=tol)
