"""How many anchors a view can carry."""

import pytest

from viewmend.core.agfti.anchor_count import graph_size, largest_power_of_two


@pytest.mark.parametrize(
    ("n_rows", "asked", "size"),
    [
        (2000, "auto", (256, 7)),
        (303, "auto", (64, 7)),
        (20, "auto", (8, 7)),
        (5, "auto", (4, 3)),
        (1, "auto", (1, 0)),
        (100, 60, (60, 7)),
        (50, 60, (32, 7)),
        (50, 4, (4, 3)),
    ],
)
def test_anchor_count_follows_the_rows(n_rows, asked, size):
    assert graph_size(asked, 7, n_rows) == size


def test_largest_power_of_two():
    assert [largest_power_of_two(n) for n in (1, 2, 3, 4, 255, 256)] == [1, 2, 2, 4, 128, 256]
    assert graph_size("auto", 7, 20_000, auto_most=1024) == (1024, 7)
