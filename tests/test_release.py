"""One version everywhere, and a source distribution with all that its tests read."""

import importlib.util
import re
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

import viewmend

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def releasing():
    """The script that decides whether a tag can be released."""
    spec = importlib.util.spec_from_file_location(
        "check_release", ROOT / "scripts" / "check_release.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_the_same_everywhere(releasing):
    assert releasing.package_version() == viewmend.__version__
    assert releasing.citation()["version"] == viewmend.__version__
    assert "version" in PYPROJECT["project"]["dynamic"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert releasing.HEADING.search(changelog)["version"] in (viewmend.__version__, "Unreleased")
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert f'version: "{viewmend.__version__}"' in recipe


def release_of(folder, version="1.2.3", tag_day="2026-01-31", cited_day="2026-01-31"):
    (folder / "src" / "viewmend").mkdir(parents=True)
    (folder / "src" / "viewmend" / "version.py").write_text(f'__version__ = "{version}"\n')
    day = f"date-released: {cited_day}\n" if cited_day else ""
    (folder / "CITATION.cff").write_text(f"title: x\nversion: {version}\n{day}")
    heading = f"## {version} ({tag_day})"
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n\n- New.\n\n## 1.0.0 (2025)\n")
    return folder


def test_a_tag_that_agrees_with_everything_can_be_released(releasing, tmp_path):
    folder = release_of(tmp_path)
    assert releasing.faults("v1.2.3", folder) == []
    assert releasing.notes("1.2.3", folder) == ("2026-01-31", "- New.")


@pytest.mark.parametrize(
    ("tag", "changes", "told"),
    [
        ("v1.2.4", {}, "tag v1.2.3"),
        ("v1.2.3", {"tag_day": "unreleased"}, "CHANGELOG.md has 1.2.3 as unreleased"),
        ("v1.2.3", {"cited_day": ""}, "needs date-released"),
        ("v1.2.3", {"cited_day": "2025-12-31"}, "needs date-released"),
    ],
)
def test_a_tag_that_does_not_is_told_why(releasing, tmp_path, tag, changes, told):
    assert any(told in fault for fault in releasing.faults(tag, release_of(tmp_path, **changes)))


def test_every_dependency_of_the_recipe_is_that_of_the_project():
    """Names and lowest versions, those of conda-forge being the same for these packages."""
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    run = recipe.split("  run:\n")[1].split("\n\n")[0]
    listed = set(re.findall(r"^\s+- ([\w-]+) (>=[\w.]+)$", run, re.MULTILINE))
    needed = {
        re.fullmatch(r"([\w-]+)(>=[\w.]+)", one).groups()
        for one in PYPROJECT["project"]["dependencies"]
    }
    assert needed <= listed
    extra = {name for name, _ in listed - needed}
    command = " ".join(PYPROJECT["project"]["optional-dependencies"]["cli"])
    assert all(name in command for name in extra)


def tracked_files():
    """Files of the checkout; a skip where this is none."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=False
    )
    if listed.returncode or "pyproject.toml" not in listed.stdout.split():
        pytest.skip("this is no checkout: the source distribution is made from one")
    return listed.stdout.split()


def test_the_source_distribution_has_all_that_is_tracked_but_the_machinery_of_the_host():
    """So that whatever a test reads is there."""
    included = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]

    def is_included(name):
        return any(name == one or name.startswith(f"{one}/") for one in included)

    left_out = [name for name in tracked_files() if not is_included(name)]
    assert [name for name in left_out if not fnmatch(name, ".*")] == []


def test_actions_of_the_workflows_are_of_a_fixed_version_and_write_nothing_unasked():
    yaml = pytest.importorskip("yaml", reason="reads the workflows")
    folder = ROOT / ".github" / "workflows"
    if not folder.is_dir():
        pytest.skip("the source distribution has no workflows")
    for path in folder.glob("*.yml"):
        flow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert flow["permissions"] == {"contents": "read"}, path.name
        for job in flow["jobs"].values():
            for step in job.get("steps", ()):
                if "uses" in step:
                    assert re.search(r"@(v\d|release/v\d|[0-9a-f]{40})", step["uses"]), step


def test_workflows_try_every_python_that_the_project_names():
    yaml = pytest.importorskip("yaml", reason="reads the workflows")
    path = ROOT / ".github" / "workflows" / "ci.yml"
    if not path.is_file():
        pytest.skip("the source distribution has no workflows")
    matrix = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]["tests"]["strategy"]["matrix"]
    named = [one.rpartition(" ")[2] for one in PYPROJECT["project"]["classifiers"]]
    assert matrix["python"] == [one for one in named if re.fullmatch(r"3\.\d+", one)]
    assert {one.partition("-")[0] for one in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_targets_of_make_that_workflows_call_exist():
    folder = ROOT / ".github" / "workflows"
    if not folder.is_dir():
        pytest.skip("the source distribution has no workflows")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.yml"))
    called = set(re.findall(r"run: make (\w+)", text))
    assert called
    assert called <= set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
