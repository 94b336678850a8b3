"""Who takes part, with which settings."""

import json

import pytest
from sklearn.base import BaseEstimator

from viewmend.baselines.registry import METHODS
from viewmend.bench.methods import ANCHORS, CONTESTANTS, IMVGCN_PRESETS, Contestant, contestant
from viewmend.bench.runs import RunKey, setting_of
from viewmend.exceptions import InvalidParameterError
from viewmend.models.agfti import PAPER, AGFTIClassifier

# Settings of the released script, or of its grids thinned over their whole range.
THINNED_SIZES = {
    "AGF-TI": 9,
    "AGF-TI (released code)": 9,
    "SLIM": 25,
    "AMSC": 5,
    "AMMSS": 20,
    "AMGL": 1,
    "MLAN": 1,
    "AMUSE": 2,
    "FMSSL": 4,
    "FMSEL": 4,
    "CFMSC": 27,
    "MVAR": 4,
    "ERL-MVSC": 1,
    "IMvGCN": 1,
    "GEGCN": 1,
    "Mend": 1,
    "AGF-TI (order-free)": 1,
}
FULL_SIZES = {"AGF-TI": 21, "SLIM": 81, "CFMSC": 343, "AMMSS": 30, "FMSEL": 125, "MLAN": 1}


def built(name, data="-", setting=(), seed=0):
    return contestant(name).build(data, dict(setting), seed)


def test_every_method_of_the_registry_takes_part():
    classes = {type(built(name)) for name in CONTESTANTS}
    assert classes == {method.estimator for method in METHODS.values()}
    for name, method in METHODS.items():
        assert contestant(name).needs_imputation == method.needs_imputation


@pytest.mark.parametrize("name", CONTESTANTS)
def test_grids_hold_settings_the_method_takes_and_keys_can_hold(name):
    row = contestant(name)
    for settings in (row.grid, row.thinned_grid):
        texts = set()
        for setting in settings:
            model = row.build("-", setting, 0)
            assert {key: model.get_params()[key] for key in setting} == setting
            key = RunKey("fit", "paper", "CUB", 0.5, 0.05, name, setting_of(setting), 0)
            assert RunKey.from_dict(json.loads(key.text)) == key
            texts.add(key.text)
        assert len(texts) == len(settings) >= 1


@pytest.mark.parametrize(("name", "size"), THINNED_SIZES.items())
def test_thinned_grids_have_the_sizes_of_the_script(name, size):
    assert len(contestant(name).thinned_grid) == size


@pytest.mark.parametrize(("name", "size"), FULL_SIZES.items())
def test_grids_have_the_sizes_of_the_paper(name, size):
    assert len(contestant(name).grid) == size


@pytest.mark.parametrize("name", ["AGF-TI", "SLIM", "CFMSC"])
def test_grids_thinned_here_are_part_of_the_papers_and_reach_as_far(name):
    row = contestant(name)
    assert all(setting in row.grid for setting in row.thinned_grid)


def test_agfti_is_the_papers_under_its_name_and_order_free_under_another():
    model = built("AGF-TI")
    assert {key: model.get_params()[key] for key in PAPER} == PAPER
    assert model.compat is None
    assert built("AGF-TI (released code)").compat == "released"
    order_free = built("AGF-TI (order-free)").get_params()
    assert order_free | {"random_state": None} == AGFTIClassifier().get_params()


@pytest.mark.parametrize("name", ["AGF-TI", "AMSC", "AMMSS"])
def test_anchors_are_the_papers_on_its_data_and_automatic_elsewhere(name):
    assert built(name, "CUB").n_anchors == 64
    assert built(name, "AwA").n_anchors == 512
    assert built(name, "OutScene (surrogate)").n_anchors == 256
    assert built(name, "mine").n_anchors == "auto"
    # What an experiment asks for stands over both.
    assert built(name, "CUB", {"n_anchors": 32}).n_anchors == 32
    assert {entry["n_anchors"] for entry in ANCHORS.values()} == {64, 256, 512}


def test_networks_are_run_with_the_settings_of_their_authors():
    presets = METHODS["IMvGCN"].estimator.presets
    for data, name in IMVGCN_PRESETS.items():
        params = built("IMvGCN", data).get_params()
        assert {key: params[key] for key in presets[name]} == dict(presets[name])


def test_seeds_and_imputers_reach_the_methods_that_take_them():
    assert built("AGF-TI", seed=5).random_state == 5
    assert not hasattr(built("union graph", seed=5), "random_state")
    imputer = BaseEstimator()
    assert contestant("AMGL").build("-", {}, 0, imputer).imputer is imputer


class OwnMethod(BaseEstimator):
    def __init__(self, strength=1.0, random_state=None):
        self.strength = strength
        self.random_state = random_state


def test_a_method_of_ones_own_is_a_class_and_a_row(monkeypatch):
    row = Contestant(OwnMethod, {"strength": 2.0}, thinned={"strength": (1.0, 3.0)})
    monkeypatch.setitem(CONTESTANTS, "own", row)
    assert built("own", seed=4).get_params() == {"strength": 2.0, "random_state": 4}
    assert contestant("own").grid == [{}]
    assert [setting["strength"] for setting in contestant("own").thinned_grid] == [1.0, 3.0]


def test_a_method_may_be_named_by_where_it_is():
    row = contestant("viewmend.baselines.union_graph:UnionGraphClassifier")
    assert type(row.build("-", {}, 0)) is METHODS["union graph"].estimator
    assert not row.needs_imputation


def test_unknown_methods_and_settings_are_refused():
    with pytest.raises(InvalidParameterError, match=r"method='best' is not known; .*'AGF-TI'"):
        contestant("best")
    with pytest.raises(TypeError, match="colour"):
        built("AMGL", setting={"colour": 1})
