"""Check that a tag can be released: version, changelog and citation agree.

python scripts/check_release.py v0.2.0
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEADING = re.compile(r"^## (?P<version>\S+) \((?P<state>[^)]*)\)$", re.MULTILINE)
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def package_version(root: Path = ROOT) -> str:
    """What ``version.py`` says, the only place where the version is written by hand."""
    text = (root / "src" / "viewmend" / "version.py").read_text(encoding="utf-8")
    return re.search(r'__version__ = "([^"]+)"', text)[1]


def citation(root: Path = ROOT) -> dict[str, str]:
    """Fields of CITATION.cff that stand alone on their line."""
    text = (root / "CITATION.cff").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z-]+): (\S.*)$", text, re.MULTILINE))


def notes(version: str, root: Path = ROOT) -> tuple[str, str]:
    """State of a version in the changelog, a day or another word, and what it says of it."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    parts = {found["version"]: found for found in HEADING.finditer(text)}
    if version not in parts:
        return "absent", ""
    found = parts[version]
    body = text[found.end() :].split("\n## ", 1)[0]
    return found["state"], body.strip()


def faults(tag: str, root: Path = ROOT) -> list[str]:
    """Why a tag cannot be released; nothing if it can."""
    version, cited = package_version(root), citation(root)
    state, told = notes(version, root)
    checks = {
        f"the tag is {tag} but the version is {version}; tag v{version}": tag == f"v{version}",
        f"CHANGELOG.md has {version} as {state}; write '## {version} (YYYY-MM-DD)'": bool(
            DAY.fullmatch(state)
        ),
        f"CHANGELOG.md says nothing of {version}": bool(told),
        f"CITATION.cff has version {cited.get('version')}; write {version}": cited.get("version")
        == version,
        "CITATION.cff needs date-released, the day of the changelog": cited.get("date-released")
        == state,
    }
    return [fault for fault, is_right in checks.items() if not is_right]


def main() -> None:
    """Print the notes, or what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tag", help="such as v0.2.0")
    parser.add_argument("--notes", action="store_true", help="print what the changelog says")
    given = parser.parse_args()
    found = faults(given.tag)
    if found:
        sys.exit("\n".join(found))
    print(notes(package_version())[1] if given.notes else f"{given.tag} can be released")


if __name__ == "__main__":
    main()
