"""Model files: what was saved comes back, and nothing else does harm."""

import copy
import io
import json
import pickle
import warnings
import zipfile
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, triu
from sklearn.exceptions import NotFittedError

import viewmend
from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier
from viewmend.baselines.union_graph import UnionGraphClassifier
from viewmend.core.mend.geometry import NeighbourRule
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError, InvalidViewsError, VersionWarning
from viewmend.persistence import ModelFileError, load, save
from viewmend.persistence.registry import VOCABULARY
from viewmend.storage.archive import SCHEMA, read_archive, write_archive, write_members
from viewmend.storage.arrays import ArraySpec, array_bytes, narrowed, read_array, spec_of
from viewmend.storage.tree import Reader, Writer

BLOBS = make_multiview_blobs(36, n_features=(3, 2), noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.25, random_state=0)
# Some with one view only.
NEW = hide(
    make_multiview_blobs(24, n_features=(3, 2), noise=4.0, random_state=1).views,
    np.arange(24) % 3,
    missing_rate=0.5,
    label_rate=0.5,
    random_state=1,
).data

MODELS = {
    "agfti": AGFTIClassifier(random_state=0, tol=1e6),
    "agfti of the paper": AGFTIClassifier.from_paper(
        n_anchors=8, tol=1e6, random_state=np.random.default_rng(3)
    ),
    "agfti in float32": AGFTIClassifier(dtype="float32", tol=1e6, propagation_damping=[1.0, 0.5]),
    "mend": MendClassifier(n_rounds=2, n_landmarks=9, edge_power=1.0),
    "mend without evidence": MendClassifier(
        n_rounds=0, n_landmarks=9, representations=("unit", "hellinger"), class_prior="uniform"
    ),
}
NAMES = np.array(["blue", "green", "red"])
LABELS = {
    "ints": [3, 5, 2**40],
    "strings": ["Ångström", "b\x00c", "longer than the others"],
    "bools": [True, False, True],
    "dates of Python": [date(2020, 1, 1), datetime(2021, 1, 1, 12), date(2022, 1, 1)],
    "dates": np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="M8[D]"),
    "big endian": np.array([1, 2, 3], dtype=">i4"),
    "mixed": [("a", 1), "b", 2.5],
}


def fitted(model, y=TASK.y):
    return copy.deepcopy(model).fit(TASK.data, y)


def saved(model):
    file = io.BytesIO()
    save(model, file)
    return file.getvalue()


def loaded(data):
    return load(io.BytesIO(data))


def relabelled(values):
    """Labels in place of the codes 0, 1, 2, and None where there is none."""
    y = np.full(len(TASK.y), None, dtype=object)
    for i in np.flatnonzero(TASK.y >= 0):
        y[i] = values[TASK.y[i]]
    return y


def assert_same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


@pytest.fixture(scope="module")
def files():
    return {name: saved(fitted(model)) for name, model in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_predicts_the_same_bits(name):
    model = fitted(MODELS[name])
    data = saved(model)
    again = loaded(data)
    assert type(again) is type(model)
    for views in (NEW, list(BLOBS.views)):
        assert_same_bits(again.predict_proba(views), model.predict_proba(views))
    assert_same_bits(again.transduction_, model.transduction_)
    assert_same_bits(again.label_distributions_, model.label_distributions_)
    assert again.history_ == model.history_
    assert saved(again) == data


@pytest.mark.parametrize("name", ["agfti of the paper", "mend"])
def test_a_loaded_model_fits_again_as_the_saved_one_does(name):
    model = fitted(MODELS[name])
    again = loaded(saved(model))
    assert saved(again.fit(TASK.data, TASK.y)) == saved(model.fit(TASK.data, TASK.y))


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_any_plain_type_come_back_with_their_type(name):
    model = fitted(MODELS["mend"], relabelled(LABELS[name]))
    again = loaded(saved(model))
    assert again.classes_.dtype == model.classes_.dtype
    assert [type(label) for label in again.classes_] == [type(label) for label in model.classes_]
    for found, expected in (
        (again.classes_, model.classes_),
        (again.transduction_, model.transduction_),
        (again.predict(NEW), model.predict(NEW)),
    ):
        assert found.tolist() == expected.tolist()


def test_labels_and_states_without_a_plain_form_are_refused():
    exact = [Decimal(1), Decimal(2), Decimal(3)]
    with pytest.raises(ModelFileError, match=r"classes_ of MendClassifier: .* of type Decimal"):
        saved(fitted(MODELS["mend"], relabelled(exact)))
    legacy = np.random.Generator(np.random.MT19937(0))
    with pytest.raises(ModelFileError, match=r"random_state of AGFTIClassifier: .* MT19937"):
        saved(fitted(AGFTIClassifier(random_state=legacy, tol=1e6)))


def test_a_class_prior_keyed_by_labels_comes_back():
    prior = {"blue": 0.5, "green": 0.25, "red": 0.25}
    model = fitted(
        MendClassifier(n_rounds=1, n_landmarks=9, class_prior=prior), relabelled(NAMES.tolist())
    )
    assert loaded(saved(model)).class_prior == prior


def test_a_search_is_saved_by_its_best_estimator():
    search = LabelSearchCV(MODELS["mend without evidence"], {"spreading": [0.5]}, cv=2)
    search.fit(TASK.data, TASK.y)
    again = loaded(saved(search))
    assert again.get_params() == search.best_estimator_.get_params()
    assert_same_bits(again.predict_proba(NEW), search.predict_proba(NEW))


def test_arrays_that_a_model_shares_are_stored_once_and_shared_again(files):
    again = loaded(files["agfti"])
    assert all(
        a is b for a, b in zip(again.anchors_, again.fitted_state_.induction.anchors, strict=True)
    )


def test_numpy_reads_the_file_too(files):
    with np.load(io.BytesIO(files["mend"]), allow_pickle=False) as archive:
        manifest = json.loads(archive["model.json"])
        name = manifest["fitted"]["label_distributions_"]["array"]
        stored = archive[f"arrays/{name}"]
    assert_same_bits(stored, loaded(files["mend"]).label_distributions_)


def test_save_replaces_a_file_only_by_a_whole_one(tmp_path):
    path, model = tmp_path / "model.vmend", fitted(MODELS["mend without evidence"])
    save(model, path)
    before = path.read_bytes()
    model.label_distributions_ = np.full_like(model.label_distributions_, np.nan)
    with pytest.raises(ModelFileError, match="label_distributions_ of MendClassifier: NaN"):
        save(model, path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.vmend"]
    assert_same_bits(load(str(path)).predict_proba(NEW), model.predict_proba(NEW))


def test_only_fitted_models_of_the_table_are_saved():
    with pytest.raises(NotFittedError):
        saved(MendClassifier())
    with pytest.raises(ModelFileError, match="got UnionGraphClassifier"):
        saved(fitted(UnionGraphClassifier()))

    class Impostor(MendClassifier):
        pass

    Impostor.__name__ = "MendClassifier"
    with pytest.raises(ModelFileError, match="model must be one of"):
        saved(fitted(Impostor(n_rounds=0, n_landmarks=9)))


plain = st.none() | st.booleans() | st.integers() | st.text() | st.floats()
# An hour that a clock shows twice is not told from itself.
times = st.datetimes(timezones=st.none() | st.just(UTC)).map(lambda time: time.replace(fold=0))
plain |= st.dates() | times
shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@given(
    st.recursive(
        plain,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(plain, inner, max_size=3)
        ),
        max_leaves=12,
    )
)
@settings(max_examples=150, deadline=None)
def test_every_plain_value_survives_its_tree(value):
    write = Writer(VOCABULARY)
    text = json.dumps(write(value), allow_nan=False)
    again = Reader(write.arrays, VOCABULARY)(json.loads(text))
    # repr tells -0.0 from 0.0, 1 from True and a list from a tuple, and NaN equals itself.
    assert repr(again) == repr(value)


@given(
    shapes,
    st.sampled_from(["<f4", "<f8", ">f8", "|b1", "<i4", "|u1", "<U3", "|S2", "<M8[s]"]),
    st.permutations(range(3)),
    st.integers(0, 9),
)
@settings(max_examples=100, deadline=None)
def test_arrays_survive_their_bytes_and_are_those_of_numpy(shape, dtype, axes, seed):
    drawn = np.random.default_rng(seed).integers(0, 2, shape).astype(dtype)
    array = drawn.transpose([axis for axis in axes if axis < len(shape)])
    spec = spec_of("x", array)
    raw = spec.header + bytes(array_bytes(spec, array))
    again = read_array("x", spec, io.BytesIO(raw), len(raw))
    assert_same_bits(again, array)
    if array.flags.f_contiguous:
        assert again.flags.f_contiguous
    assert_array_equal(np.load(io.BytesIO(raw), allow_pickle=False), array)
    assert ArraySpec.from_json("x", json.loads(json.dumps(spec.to_json()))) == spec


def test_a_file_is_at_most_half_larger_than_the_data():
    """Also where nothing of the data can be compressed: random numbers, all of them observed."""
    blobs = make_multiview_blobs(600, n_views=3, n_features=150, noise=3.0, random_state=0)
    y = np.where(np.arange(600) < 60, blobs.y, -1)
    model = MendClassifier(n_rounds=2).fit(blobs.views, y)
    file = io.BytesIO()
    save(model, file)
    assert file.tell() <= 1.5 * sum(view.nbytes for view in blobs.views)
    rounded = [view.astype(np.float32).astype(np.float64) for view in blobs.views]
    file = io.BytesIO()
    save(MendClassifier(n_rounds=2).fit(rounded, y), file)
    assert file.tell() <= 0.9 * sum(view.nbytes for view in rounded)


@pytest.mark.parametrize(
    ("array", "stored"),
    [
        (np.array([0.5, -0.0, 2.0**120]), "<f4"),
        (np.array([0.5, 0.1]), "<f8"),
        (np.array([1.0, 1e39]), "<f8"),
        (np.array([-128, 127]), "|i1"),
        (np.array([0, 200]), "<i2"),
        (np.array([2**40]), "<i8"),
        (np.array([300], dtype=np.uint64), "<u2"),
        (np.array([0.5], dtype=">f8"), ">f8"),
        (np.zeros((0, 3)), "<f8"),
        (np.asfortranarray(np.arange(6.0).reshape(2, 3)), "<f4"),
    ],
    ids=str,
)
def test_numbers_are_stored_in_the_smallest_type_that_keeps_them(array, stored):
    spec = narrowed(spec_of("x", array), array)
    assert spec.stored.str == stored
    raw = spec.header + bytes(array_bytes(spec, array))
    again = read_array("x", spec, io.BytesIO(raw), len(raw))
    assert_array_equal(again, array)
    assert_array_equal(np.signbit(again), np.signbit(array))
    assert (again.dtype, again.flags.f_contiguous) == (array.dtype, array.flags.f_contiguous)


@pytest.mark.parametrize("kind", ["symmetric", "csr"])
def test_sparse_arrays_come_back_entry_by_entry(kind):
    rng = np.random.default_rng(0)
    graph = csr_array(rng.random((9, 9)) * (rng.random((9, 9)) < 0.4))
    graph = csr_array((graph + graph.T) / 2) if kind == "symmetric" else graph
    write = Writer(VOCABULARY)
    tree = write(graph)
    assert list(tree) == [kind]
    again = Reader(write.arrays, VOCABULARY)(tree)
    for part in ("data", "indices", "indptr"):
        before, after = getattr(graph, part), getattr(again, part)
        assert before.dtype == after.dtype
        assert_array_equal(before, after)


def edited(data, edit):
    """The file with its members changed by ``edit(members)``, with valid checksums and digest."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members = edit(members) or members
    file = io.BytesIO()
    write_members(file, ((name, [content]) for name, content in members.items()))
    return file.getvalue()


def with_manifest(data, edit):
    def edit_members(members):
        manifest = json.loads(members["model.json"])
        edit(manifest)
        members["model.json"] = json.dumps(manifest).encode()

    return edited(data, edit_members)


def test_foreign_files_are_told_from_truncated_ones(files):
    data = files["mend"]
    for foreign in (b"", b"\x89PNG\r\n", pickle.dumps(NeighbourRule()), data[5:]):
        with pytest.raises(ModelFileError, match="does not begin as a file of viewmend"):
            loaded(foreign)
    for size in (4, 100, len(data) // 2, len(data) - 1):
        with pytest.raises(ModelFileError, match=r"truncated|the digest of all"):
            loaded(data[:size])
    other = io.BytesIO()
    np.savez(other, a=np.zeros(3))
    with pytest.raises(ModelFileError, match=r"without; |stored without"):
        load(other)


def test_errors_of_a_file_name_it(files, tmp_path):
    for name, content in {"cut.vm": files["mend"][:-9], "truth.csv": b"id,label"}.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=rf"{name}: "):
            load(path)


def test_a_file_of_version_0_1_says_so():
    path = Path(__file__).parent / "data" / "model_0_1.vm"
    with pytest.raises(
        ModelFileError, match=r"written by an older viewmend \(schema 1\).* save with this version"
    ):
        load(path)


MISSING = "nothing"
CHANGES = {
    "a newer schema": (("schema",), SCHEMA + 1, "upgrade viewmend"),
    "schema true": (("schema",), True, "schema must be a positive integer"),
    "another format": (("format",), "pickle", "format must be 'viewmend model'"),
    "an unknown key": (("extra",), 1, "keys of model.json"),
    "a class by path": (("class",), "os.system", "class must be one of"),
    "a missing parameter": (("parameters", "spreading"), MISSING, "parameters must be"),
    "an unknown parameter": (("parameters", "fit"), 1, "parameters must be"),
    "a bad parameter": (("parameters", "spreading"), 2.0, "spreading of MendClassifier"),
    "an unknown attribute": (("fitted", "__class__"), "x", "fitted attributes must be among"),
    "a method": (("fitted", "predict"), "x", "fitted attributes must be among"),
    "a missing attribute": (("fitted", "history_"), MISSING, "fitted attributes must be complete"),
    "another type": (("fitted", "n_iter_"), "3", "n_iter_ of MendClassifier"),
    "an unknown tag": (("fitted", "n_iter_"), {"pickle": "gA=="}, "tag must be one of"),
    "an unknown record": (
        ("fitted", "fitted_state_", "record", 1, "induction", "record", 0),
        "Popen",
        "a record must be",
    ),
    "an unknown function": (
        (
            "fitted",
            "fitted_state_",
            "record",
            1,
            "induction",
            "record",
            1,
            "settings",
            "record",
            1,
            "weigh",
        ),
        {"function": "os.system"},
        "a function must be one of",
    ),
    "a graph too wide": (("fitted", "graph_", "symmetric", 1), 2**70, "shape of a sparse array"),
    "an array of objects": (("arrays", "a0", "dtype"), "|O", "dtype of a0"),
    "a structured array": (("arrays", "a0", "dtype"), "<f8,<f8", "dtype of a0"),
    "a huge array": (("arrays", "a0", "shape"), [2**61], "a0 after its header"),
    "a shape that overflows": (("arrays", "a0", "shape"), [2**40, 2**40], "a0 after its header"),
    "an array without a member": (
        ("arrays", "a9999"),
        {"dtype": "<f8", "shape": [1], "fortran": False, "stored": "<f8"},
        "members must be",
    ),
    "numbers stored in a larger type": (("arrays", "a0", "stored"), "<f8", "one that .* holds"),
    "half of a symmetric graph": (("fitted", "graph_", "symmetric", 1), 37, "be square"),
    "an unused array": (("fitted", "off_graph_", "array"), "a0", "arrays must be named"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_the_tables_do_not_know_is_an_error_that_says_so(files, name):
    path, value, message = CHANGES[name]

    def edit(manifest):
        node = manifest
        for key in path[:-1]:
            node = node[key]
        if value is MISSING:
            del node[path[-1]]
        else:
            node[path[-1]] = value

    with pytest.raises(ModelFileError, match=message):
        loaded(with_manifest(files["mend"], edit))


def test_a_code_without_a_class_is_an_error(files):
    """As a damaged file has it: explanations would name a class that is not there."""
    model = loaded(files["mend"])
    state = model.fitted_state_
    wrong = np.where(state.label_codes == 0, 99, state.label_codes)
    model.fitted_state_ = replace(state, label_codes=wrong)
    with pytest.raises(ModelFileError, match="label_codes must be within"):
        loaded(saved(model))


@pytest.mark.parametrize(
    "text",
    [b"{", b"[1]", b'{"a": 1, "a": 1}', b'{"a": NaN}', b'{"a": 1e999}', b"[" * 10**6, b"\xff"],
)
def test_strange_json_is_an_error(files, text):
    with pytest.raises(ModelFileError, match=r"model\.json"):
        loaded(edited(files["agfti"], lambda members: members | {"model.json": text}))


def test_a_tree_too_deep_is_an_error(files):
    deep = '{"tuple": [' * 900 + "1" + "]}" * 900

    def edit(members):
        text = members["model.json"].decode()
        members["model.json"] = text.replace('"n_iter_": ', f'"n_iter_": {deep}, "x": ').encode()

    with pytest.raises(ModelFileError):
        loaded(edited(files["agfti"], edit))


@pytest.mark.parametrize("name", ["/etc/passwd", "../a.npy", "arrays/", "arrays/extra.npy"])
def test_members_of_other_names_are_an_error(files, name):
    with pytest.raises(ModelFileError, match="members must be"):
        loaded(edited(files["agfti"], lambda members: members | {name: b"x"}))


def test_repeated_members_and_bombs_are_errors(files):
    twice = io.BytesIO(files["agfti"])
    with zipfile.ZipFile(twice, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("model.json", "{}")
    with pytest.raises(ModelFileError, match="names of members must be distinct"):
        load(twice)
    for member, message in (
        ("model.json", "stored, or an array deflated"),
        ("arrays/a0.npy", "at most 1000 times its place"),
    ):
        bomb = io.BytesIO()
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(member, bytes(10**7))
        with pytest.raises(ModelFileError, match=message):
            load(bomb)


def test_members_that_overlap_are_an_error(files):
    data = bytearray(files["agfti"])
    # The central directory claims that the second member is as long as the whole file.
    at = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 4)
    data[at + 20 : at + 28] = 2 * len(data).to_bytes(4, "little")
    with pytest.raises(ModelFileError, match="the members must be at most"):
        loaded(bytes(data))


def with_array(data, pick, change):
    """The file with the array that ``pick(model)`` is replaced by ``change`` of it."""
    document = read_archive(io.BytesIO(data))
    target = pick(loaded(data))
    name = next(
        name
        for name, array in document.arrays.items()
        if array.dtype == target.dtype and np.array_equal(array, target)
    )
    file = io.BytesIO()
    document.arrays[name] = change(document.arrays[name])
    write_archive(file, document)
    return file.getvalue()


def set_last(value):
    def change(array):
        array = array.copy()
        array[(-1,) * array.ndim] = value
        return array

    return change


WRONG_ARRAYS = {
    "NaN": (lambda m: m.fitted_state_.induction.F, set_last(np.nan), "finite"),
    "columns out of range": (lambda m: triu(m.graph_).tocsr().indices, set_last(36), "below 36"),
    "negative columns": (lambda m: triu(m.graph_).tocsr().indices, set_last(-1), "below 36"),
    "row ends that fall": (
        lambda m: triu(m.graph_).tocsr().indptr,
        lambda indptr: np.concatenate([indptr[:1], indptr[-1:] + 0 * indptr[2:], indptr[-1:]])[
            [0, 1, 0, *range(3, len(indptr))]
        ],
        "ascending",
    ),
    "landmarks out of range": (
        lambda m: m.fitted_state_.induction.views[0].regression.landmarks,
        set_last(99),
        "landmarks",
    ),
    "rows not observed": (
        lambda m: m.fitted_state_.induction.views[0].rows,
        lambda rows: rows[::-1],
        "rows must be those observed",
    ),
    "classes out of range": (
        lambda m: m.fitted_state_.induction.classes,
        set_last(3),
        "classes",
    ),
    "coefficients too few": (
        lambda m: m.fitted_state_.induction.views[0].regression.coefficients,
        lambda coefficients: coefficients[:-1],
        "shape of coefficients",
    ),
    "negative degrees": (
        lambda m: m.fitted_state_.induction.degrees,
        set_last(-1.0),
        "degrees must be within",
    ),
    "negative weights": (
        lambda m: triu(m.graph_).tocsr().data,
        set_last(-1.0),
        "graph_ must be within",
    ),
    "a class of no share": (
        lambda m: m.fitted_state_.induction.evidence.gaussian.prior,
        set_last(0.0),
        "must be within",
    ),
    "data whose squares overflow": (
        lambda m: m.fitted_state_.induction.views[0].X,
        set_last(1e300),
        "X must be within",
    ),
    "data of another byte order": (
        lambda m: m.fitted_state_.induction.views[0].X,
        lambda X: X.astype(">f8"),
        "dtype of X must be of this machine",
    ),
    "landmarks of no dimension": (
        lambda m: m.fitted_state_.induction.views[0].regression.landmarks,
        lambda landmarks: landmarks[-1:].reshape(()),
        "shape of",
    ),
    "float classes": (
        lambda m: m.fitted_state_.induction.classes,
        lambda classes: classes.astype(float),
        "dtype of classes",
    ),
}


@pytest.mark.parametrize("name", WRONG_ARRAYS)
def test_arrays_that_compiled_code_must_not_see_are_errors(files, name):
    pick, change, message = WRONG_ARRAYS[name]
    with pytest.raises(ModelFileError, match=message):
        loaded(with_array(files["mend"], pick, change))


NUMBERS = {
    "neighbours": ("neighbours", {"share": {"float": "nan"}}, "settings"),
    "spreading": ("spreading", 7.0, "spreading"),
    "edge_power": ("edge_power", 1e300, "settings"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_settings_that_no_parameters_make_are_an_error(files, name):
    field, value, message = NUMBERS[name]

    def edit(manifest):
        state = manifest["fitted"]["fitted_state_"]["record"][1]
        settings = state["induction"]["record"][1]["settings"]["record"][1]
        if isinstance(value, dict):
            settings[field]["record"][1].update(value)
        else:
            settings[field] = value

    with pytest.raises(ModelFileError, match=message):
        loaded(with_manifest(files["mend"], edit))


def test_more_neighbours_than_anchors_are_an_error(files):
    def edit(manifest):
        state = manifest["fitted"]["fitted_state_"]["record"][1]
        state["induction"]["record"][1]["k"] = 8

    with pytest.raises(ModelFileError, match="k must be between"):
        loaded(with_manifest(files["agfti"], edit))


def mutated(data, rng):
    """The bytes with one to three small accidents."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        # Half of them where the structure is: in the directory at the end, or at the beginning.
        low, high = [(0, len(data)), (0, len(data)), (0, 4000), (len(data) - 3000, len(data))][
            rng.integers(4)
        ]
        at = int(rng.integers(max(low, 0), max(min(high, len(data)), 1)))
        length = int(rng.integers(1, 9))
        accident = rng.integers(6)
        if accident == 0:
            data[at:] = b""
        elif accident == 1:
            del data[at : at + length]
        elif accident == 2:
            data[at:at] = rng.bytes(length)
        elif accident == 3:
            data[at : at + length] = data[:length]
        elif at < len(data):
            data[at] ^= 1 << int(rng.integers(8))
    return bytes(data)


def test_a_damaged_file_is_an_error(files):
    rng = np.random.default_rng(0)
    for i in range(400):
        original = files[["agfti", "mend without evidence"][i % 2]]
        damaged = mutated(original, rng)
        assert damaged != original
        with pytest.raises(ModelFileError):
            loaded(damaged)


JUNK = [None, True, 0, -1, 7, 2**70, 0.5, "", "a0", "a1", [], {}, [1, 2], {"tuple": []}]
JUNK += [{"array": "a0"}, {"array": "a2"}, {"float": "nan"}, {"list": [[]]}, {"scalar": "a0"}]


def forged(data, rng):
    """The file with one value of its document replaced, under valid checksums."""

    def edit(manifest):
        spots = []
        stack = [manifest]
        while stack:
            node = stack.pop()
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            spots += [(node, key) for key in keys]
            stack += [node[key] for key in keys if isinstance(node[key], (dict, list))]
        node, key = spots[rng.integers(len(spots))]
        if rng.integers(4) == 0:
            del node[key]
        elif rng.integers(3) == 0:
            other, there = spots[rng.integers(len(spots))]
            node[key] = copy.deepcopy(other[there])
        else:
            node[key] = JUNK[rng.integers(len(JUNK))]

    return with_manifest(data, edit)


def error_or_usable(data):
    """Whether the file loads, and then to a model that predicts."""
    try:
        model = loaded(data)
    except ModelFileError:
        return False
    try:
        shares = model.predict_proba(NEW)
    except InvalidViewsError:
        # Parameters may say that other data is wanted.
        return False
    assert_allclose(shares.sum(axis=1), 1)
    return True


def test_a_forged_file_is_an_error_or_a_model_that_predicts(files):
    rng = np.random.default_rng(0)
    usable = [error_or_usable(forged(files[["agfti", "mend"][i % 2]], rng)) for i in range(300)]
    # Most forgeries are found; those of a number are another model.
    assert 0 < sum(usable) < 150


def test_two_files_that_were_joined_are_no_model(files):
    for first, second in (("mend", "agfti"), ("agfti", "mend"), ("mend", "mend")):
        with pytest.raises(ModelFileError, match="the digest of all before it"):
            loaded(files[first] + files[second])


def test_every_byte_counts(files):
    """Also those that no reader of zip archives looks at: dates, permissions, gaps."""
    data = files["mend without evidence"]
    directory = data.index(b"PK\x01\x02")
    for at in (0, 10, 1000, directory - 1, directory, directory + 12, len(data) - 75, len(data)):
        with pytest.raises(ModelFileError):
            loaded(data[:at] + b"\0" + data[at:])
    for at in (4, 11, directory + 5, directory + 13, directory + 40, len(data) - 1):
        with pytest.raises(ModelFileError):
            loaded(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def test_the_versions_of_libraries_are_recorded_and_another_one_is_warned_of(files):
    written = read_archive(io.BytesIO(files["mend"])).versions
    assert written == {
        "viewmend": viewmend.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }

    def of(version):
        return with_manifest(files["mend"], lambda m: m["versions"].update(viewmend=version))

    with pytest.warns(VersionWarning, match=r"saved by viewmend 0\.1\.7"):
        loaded(of("0.1.7"))
    minor = ".".join(viewmend.__version__.split(".")[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded(of(f"{minor}.99"))


def test_a_place_that_can_hold_no_file_is_told(tmp_path):
    model = MendClassifier(n_rounds=0).fit(TASK.data, TASK.y)
    for place, told in (
        (tmp_path / "no" / "m.vm", "there is no folder"),
        (tmp_path, "is a folder"),
    ):
        with pytest.raises(InvalidParameterError, match=told):
            save(model, place)
    for what in (None, b"bytes", io.StringIO()):
        for use in (partial(save, model), load):
            with pytest.raises(InvalidParameterError, match="a path, or a file open in binary"):
                use(what)
    assert list(tmp_path.iterdir()) == []
