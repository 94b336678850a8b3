"""Take the picture of a report that the README shows, with a Chromium without a window.

    python scripts/report_picture.py [--chromium chromium] [--width 1100] [--height 1000]

Half of the views of the embedded digits and 95 % of their labels are hidden; the report is that of
`MendClassifier` with its defaults. Writes ``docs/assets/report.png``.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from viewmend import MendClassifier
from viewmend.datasets import hide, load_uci_digits

PICTURE = Path(__file__).parents[1] / "docs" / "assets" / "report.png"
# Nothing is fetched, and nothing is left behind but the picture.
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def write_report(path: Path) -> None:
    digits = load_uci_digits()
    names = ("Fourier", "profiles", "KL")
    task = hide(digits, missing_rate=0.5, label_rate=0.05, random_state=0, view_names=names)
    MendClassifier().fit(task.data, task.y).report(path, task.data, task.y)


def photograph(page: Path, args: argparse.Namespace) -> None:
    """The upper part of a page as a picture."""
    with tempfile.TemporaryDirectory() as profile:
        command = [args.chromium, *OPTIONS, f"--user-data-dir={profile}"]
        command += [f"--window-size={args.width},{args.height}", f"--screenshot={PICTURE}"]
        subprocess.run([*command, page.resolve().as_uri()], check=True, timeout=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--width", type=int, default=1100)
    parser.add_argument("--height", type=int, default=1000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        write_report(page)
        photograph(page, args)


if __name__ == "__main__":
    main()
