"""How classes are written: marks of missing labels, and names that are nearly the same."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np

from viewmend.data.indices import as_read, folded, text_of
from viewmend.exceptions import InvalidLabelsError


def _spellings(*words: str) -> set[str]:
    """The words in small letters, in capitals, and with a first capital."""
    return {spelt for word in words for spelt in (word, word.upper(), word.capitalize())}


# Text that programs and people write where there is no label; as a label it is an error. Sodium is
# "Na", and "none" may well be a class, while "None" is Python's.
MISSING_MARKS = frozenset(
    _spellings("nan", "na", "n/a", "n.a.", "#n/a", "#na", "<na>", "null", "unlabeled", "unlabelled")
    | _spellings("no label", "not available")
    | {"NaN", "NaT", "None", "-1", "-1.0", "?", "??", "--", ".", "..."}
) - {"Na"}
# Text that may be a class and may mean that there is none: a class, with a warning.
DOUBTFUL_WORDS = frozenset(
    _spellings("nil", "none", "unknown", "undefined", "undetermined", "missing") | {"-", "Na"}
)


def check_of_classes(known: np.ndarray, classes: np.ndarray) -> None:
    """Refuse labels (n_labelled,) that a model knows as the same text, but not as the same value.

    None of them could ever be predicted.
    """
    names = {text_of(label): label for label in classes.tolist()}
    seen = set(names.values())
    for label in dict.fromkeys(known.tolist()):
        if label not in seen and text_of(label) in names:
            msg = (
                f"y must call the classes as fit did, but has {label!r} where fit saw "
                f"{names[text_of(label)]!r}; convert y to the type of the labels of fit"
            )
            raise InvalidLabelsError(msg)


def written_like(classes: Iterable[Any], words: Container[str]) -> list[Any]:
    """The classes that are text, and one of ``words`` but for blanks around it."""
    return [label for label in classes if (plain_text(label) or "") in words]


def spelt_alike(classes: Iterable[Any]) -> list[list[Any]]:
    """Groups of classes that look alike but for capitals and blanks, or are text and a number."""
    spellings: dict[str, list[Any]] = {}
    for label in classes:
        spellings.setdefault(folded(plain_text(label) or text_of(label)), []).append(label)
    groups = [alike for alike in spellings.values() if len(alike) > 1]
    # Text, bytes and numbers cannot be compared with each other.
    return [sorted(alike, key=lambda label: (type(label).__name__, str(label))) for alike in groups]


def how_alike(classes: Sequence[Any]) -> str:
    """What classes that are spelt alike differ in."""
    if len({type(label) for label in classes}) > 1:
        return f"classes {', '.join(map(repr, classes))} differ only in their types"
    if len({as_read(plain_text(label) or text_of(label)) for label in classes}) > 1:
        # Such as an accent that is a sign of its own, as file names of a Mac have it.
        return f"classes {', '.join(map(ascii, classes))} differ only in what cannot be seen"
    return f"classes {', '.join(map(repr, classes))} differ only in capitals or blanks"


def class_texts(classes: Iterable[Any]) -> list[str]:
    """What classes are called in text, which tells 1 from "1" where both are there."""
    labels = list(classes)
    names = [str(label) for label in labels]
    return names if len(set(names)) == len(names) else [repr(label) for label in labels]


def plain_text(label: object) -> str | None:
    """A label of text or bytes with single blanks inside and none around; None for others."""
    if isinstance(label, bytes):
        label = label.decode("latin-1")
    return " ".join(label.split()) if isinstance(label, str) else None
