"""PyTorch: its kernels equal the agnostic ones, and a solve stays on the device."""

import copy
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode  # noqa: E402

from viewmend.backend import agnostic, dispatch  # noqa: E402
from viewmend.backend.namespace import (  # noqa: E402
    array_namespace,
    row_maxima,
    row_selector,
    to_numpy,
)
from viewmend.backend.torch_gpu import copied_through, to_host  # noqa: E402
from viewmend.core import solve  # noqa: E402
from viewmend.core.agfti.graph_fourier import graph_spectrum, summed_graph  # noqa: E402

RNG = np.random.default_rng(0)
XP = array_namespace(torch.ones(1))
B = RNG.normal(size=(40, 13)) * 2
X, A = RNG.normal(size=(30, 4)), RNG.normal(size=(9, 4))
DISTANCES = agnostic.squared_distances(X, A, xp=np)
# Rows where projections are delicate: no positive entry, all equal, ties, huge numbers.
HARD = np.array(
    [
        [-3.0, -1.0, -2.0],
        [0.5, 0.5, 0.5],
        [0.0, 0.0, 0.0],
        [1e9, 1e9 + 0.25, -1e9],
        [0.1, 0.0, -5.0],
    ]
)
TIES = np.array([[1.0, 1.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 3.0]])
SPD = A.T @ A + np.eye(4)
GRAPHS, LABELS = RNG.random((3, 20, 6)), RNG.random((20, 6))
# More columns than one piece of a Gram matrix, and a rest.
LONG = RNG.normal(size=(3, 1, 700)) + RNG.normal(size=(1, 1, 700))
TAUS = np.linspace(0.5, 3, 11)
# Equal and orthogonal views, and one that is zero: singular values that agree or vanish.
DEGENERATE = np.zeros((2, 3, 4))
DEGENERATE[:, 0], DEGENERATE[:, 1, :2], DEGENERATE[0, 2] = 1.0, 2 * np.eye(2), [3.0, 0, 0, 0]
CALLS = [
    ("project_simplex_rows", (B,)),
    ("project_simplex_rows", (HARD,)),
    ("project_positive_rows", (B, np.abs(B))),
    ("project_positive_rows", (HARD, np.full_like(HARD, 1 / 3))),
    ("nearest_anchor_weights", (DISTANCES, 3)),
    ("nearest_anchor_weights", (DISTANCES, 8)),
    ("nearest_anchor_weights", (TIES, 2)),
    ("multiply", (GRAPHS, GRAPHS[:, :6])),
    ("solve_spd", (SPD, A.T)),
    ("polar_factors", (np.stack([SPD + A[:4], A[4:8]]),)),
    ("best_response_rows", (GRAPHS, LABELS, np.array([0.5, 0.3, 0.2]), 0.7)),
    ("best_response_rows", (GRAPHS, LABELS, np.array([1.0, 0.0, 0.0]), 30.0)),
    ("imputed_rows", (GRAPHS[0], GRAPHS[1], np.array([3, 0, 7]), GRAPHS[2, :3], 0.7, 2.0)),
    ("ascend", (GRAPHS**2, GRAPHS, GRAPHS[::-1], 0.7)),
    ("squared_gap", (GRAPHS, GRAPHS[::-1])),
    ("shifted", (GRAPHS, GRAPHS**2, 0.3)),
    ("shrink_slices", (GRAPHS, 0.8)),
    ("shrink_slices", (GRAPHS[:2], 0.8)),
    ("shrink_slices", (GRAPHS[:1], 0.8)),
    ("shrink_slices", (LONG, 9.0)),
    ("shrink_slices", (LONG[:2], 9.0)),
    ("shrink_slices", (DEGENERATE, 0.5)),
    ("shrink_slices", (DEGENERATE, np.array([0.0, 1.0, 9.0]))),
    ("shrink_fourier", (GRAPHS, 1.5)),
    ("shrink_fourier", (GRAPHS[:2], TAUS)),
    ("shrink_fourier", (GRAPHS[:2, :19], 1.5)),
]


def placed(argument, dtype):
    """Positions and matrices as tensors; weights of the views stay where they are."""
    if isinstance(argument, np.ndarray) and argument.dtype.kind == "i":
        return torch.tensor(argument)
    if isinstance(argument, np.ndarray) and argument.ndim > 1:
        return torch.tensor(argument.astype(dtype))
    return argument


def test_every_torch_kernel_has_a_case():
    # Lists of rows are compared in test_parts.py.
    assert {name for name, _ in CALLS} | {"split_parts"} == set(dispatch.TORCH_KERNELS)


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-12), ("float32", 1e-4)])
@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_kernel_equals_the_agnostic_one_and_writes_to_nothing(name, arguments, dtype, tol):
    if dtype == "float32" and np.abs(arguments[0]).max() > 1e6:
        pytest.skip("a quarter at 1e9 is below the resolution of float32")
    given_ = [placed(a, dtype) for a in arguments]
    before = copy.deepcopy(given_)
    got = answers(dispatch.TORCH_KERNELS[name](*given_, xp=XP))
    expected = answers(getattr(agnostic, name)(*arguments, xp=array_namespace(B)))
    # Arrays keep their precision; what is one number is summed in double.
    assert str(got[0].dtype) == "torch." + (dtype if got[0].ndim else "float64")
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(to_numpy(one), other, rtol=tol, atol=tol)
    for one, other in zip(given_, before, strict=True):
        np.testing.assert_array_equal(one, other)


def answers(result):
    return result if isinstance(result, tuple) else (result,)


def test_dispatch_knows_the_torch_kernels():
    """The one for tensors is chosen by their library, and is not the agnostic one."""
    for name in dispatch.__all__:
        kernel = dispatch._kernel(name, torch.ones(1)).func
        expected = dispatch.TORCH_KERNELS.get(name, getattr(agnostic, name))
        assert kernel is expected


@settings(deadline=None)
@given(arrays(np.float64, (4, 9), elements=st.floats(-50, 50)))
def test_projection_obeys_its_optimality_conditions(rows):
    """``p >= 0``, ``sum(p) = 1``, and ``b - p`` is the same on the support and no larger off it."""
    P = to_numpy(dispatch.project_simplex_rows(torch.tensor(rows)))
    assert P.min() >= 0
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    excess = rows - P
    tau = np.where(P > 0, excess, np.inf).min(axis=1, keepdims=True)
    np.testing.assert_allclose(np.where(P > 0, excess, tau), tau + 0 * excess, atol=1e-11)
    assert (excess <= tau + 1e-11).all()


def test_projection_of_a_row_whose_support_shrinks_by_one_entry_a_step():
    """The worst case of the iteration: far more steps than are taken without asking."""
    row = -np.cumsum(2.0 ** -np.arange(30))[None, ::-1] * np.arange(1, 31)
    row = np.vstack([row, -(3.0 ** np.arange(30))[None]])
    xp = array_namespace(row)
    got = to_numpy(dispatch.project_simplex_rows(torch.tensor(row)))
    np.testing.assert_allclose(got, agnostic.project_simplex_rows(row, xp=xp), atol=1e-12)


def matrix_of_condition(condition, size=24):
    U, V = (np.linalg.qr(RNG.normal(size=(size, size)))[0] for _ in range(2))
    return 37 * (U * np.geomspace(1, 1 / condition, size)) @ V.T, U @ V.T


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e5])
def test_polar_factor_is_that_of_the_singular_vectors(condition):
    """``T`` is orthogonal and ``T^T A`` symmetric positive semi-definite, which is unique."""
    matrix, expected = matrix_of_condition(condition)
    T = to_numpy(dispatch.polar_factors(torch.tensor(matrix)[None]))[0]
    np.testing.assert_allclose(T, expected, atol=1e-10)
    np.testing.assert_allclose(T.T @ T, np.eye(24), atol=1e-13)


@pytest.mark.parametrize("matrix", [np.diag([2.0, 1.0, 0.0]), np.zeros((3, 3))])
def test_polar_factor_of_a_singular_matrix_is_still_a_best_rotation(matrix):
    T = to_numpy(dispatch.polar_factors(torch.tensor(matrix)[None]))[0]
    np.testing.assert_allclose(T.T @ T, np.eye(3), atol=1e-12)
    nuclear_norm = np.linalg.svd(matrix, compute_uv=False).sum()
    np.testing.assert_allclose(np.trace(T.T @ matrix), nuclear_norm, atol=1e-12)


def test_a_system_that_is_not_positive_definite_has_no_solution():
    """Told by NaN, which reaches whoever looks at the answer, instead of a finite one."""
    A, B = torch.diag(torch.tensor([1.0, -1.0, 2.0])), torch.ones(3, 2)
    assert torch.isnan(dispatch.solve_spd(A, B)).all()


@pytest.mark.parametrize("n_solved", [0, 1, 2])
def test_soft_labels_that_are_not_finite_are_an_error(make_problem, monkeypatch, n_solved):
    """Those of the start, of a round, and of the last round."""
    numbers = iter([1.0] * n_solved)
    solve_spd = dispatch.solve_spd
    monkeypatch.setattr(
        dispatch, "solve_spd", lambda A, B: next(numbers, torch.nan) * solve_spd(A, B)
    )
    with pytest.raises(FloatingPointError, match="soft labels are not finite; lower lam or rho"):
        solve(make_problem().converted(torch.tensor), max_iter=2)


FACTORIES = {"zeros", "ones", "full", "empty", "eye", "arange", "linspace", "asarray", "tensor"}
WAITS = {"__float__", "__bool__", "__int__", "item", "tolist"}
TO_HOST = {"cpu", "numpy", "__array__"}


class Watch(TorchFunctionMode):
    """Notes factories that no device reached, and how much the host asked for."""

    def __init__(self):
        super().__init__()
        self.homeless, self.asked = [], []

    def __torch_function__(self, func, _types, args=(), kwargs=None):
        name, kwargs = getattr(func, "__name__", str(func)), kwargs or {}
        if name in FACTORIES and kwargs.get("device") is None:
            self.homeless.append(name)
        if name in WAITS | TO_HOST:
            self.asked.append(args[0].numel())
        return func(*args, **kwargs)


@pytest.mark.parametrize("waves", [False, True])
def test_a_solve_makes_arrays_on_the_device_and_gives_the_host_only_numbers(make_problem, waves):
    """What would fail on a GPU, told on a CPU: arrays made elsewhere, and large transfers."""
    problem = make_problem()
    if waves:
        graph = summed_graph(problem.Z, problem.observed)
        problem = replace(problem, U=graph_spectrum(graph, 8).U)
    placed = problem.converted(torch.tensor)
    with Watch() as watch:
        solve(placed, max_iter=3)
    assert watch.homeless == []
    assert watch.asked
    assert max(watch.asked) <= (problem.Z.shape[0] + 2) ** 2


def test_the_watch_sees_what_it_is_to_see():
    with Watch() as watch:
        torch.ones(3).sum().item()
        torch.ones(3, device="meta")
    assert (watch.homeless, watch.asked) == (["ones"], [1])


@pytest.mark.parametrize("make", [np.asarray, torch.tensor])
def test_row_selector_takes_and_sets_the_rows_of_a_mask(make):
    mask, rows = make([True, False, True, False]), make(np.arange(8.0).reshape(4, 2))
    chosen = row_selector(mask)
    np.testing.assert_array_equal(rows[chosen], rows[mask])
    rows[chosen] = -rows[chosen]
    np.testing.assert_array_equal(rows, make([[-0.0, -1], [2, 3], [-4, -5], [6, 7]]))


@pytest.mark.parametrize("shape", [(0, 3), (1, 7), (5, 8), (41, 2)])
def test_a_tensor_that_comes_in_parts_is_the_same(shape):
    """Fewer entries than the stage has, as many, more, and a rest; also of another order."""
    tensor = torch.tensor(RNG.normal(size=shape))
    stage = torch.empty(40, dtype=tensor.dtype)
    np.testing.assert_array_equal(copied_through(stage, tensor), tensor.numpy())
    np.testing.assert_array_equal(copied_through(stage, tensor.mT), tensor.mT.numpy())
    assert not np.shares_memory(copied_through(stage, tensor), stage.numpy())


def test_what_is_on_the_host_stays_there():
    array, tensor = RNG.normal(size=(3, 2)), torch.ones(3)
    assert to_host(array) is array
    assert np.shares_memory(to_host(tensor), tensor.numpy())


def test_largest_entries_of_rows_are_the_same_everywhere():
    with_nan = np.where(RNG.random((9, 4)) < 0.1, np.nan, RNG.normal(size=(9, 4)))
    for P in (B, B.astype(np.float32), B[:, :1], B[:0], with_nan):
        got = row_maxima(P)
        assert got.dtype == P.dtype
        np.testing.assert_array_equal(got, P.max(axis=1, keepdims=True))
        np.testing.assert_array_equal(row_maxima(torch.tensor(P)), got)


def test_torch_is_not_imported_before_it_is_used():
    code = "import sys, viewmend, viewmend.backend.dispatch; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
