"""Messages of the library, reworded for users of the command line.

Messages of the library name Python parameters, calls and arrays. Here the remedies become options
of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["for_command_line"]


def _options(match: re.Match[str]) -> str:
    """``a=..., b=...`` as options."""
    return "change it with " + " ".join(f"--set {each}" for each in match[1].split(", "))


# What a message of the library says, and what a command says instead; tried in this order.
WORDS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"change it with set_params\(([^)]*)\)", _options),
    (r"change it with set_params", "change it with --set NAME=VALUE"),
    (r"(?<!-)\bset (\w+=\S+) or (\w+=\w+)", r"pass --set \1 or --set \2"),
    (r"(?<!-)\bset (\w+=\S+?)(?=[,;. ]|$)", r"pass --set \1"),
    (r", a NumPy random Generator or None", ""),
    (
        r"view_sizes=.* leave view_sizes out or pass one array",
        "view_sizes is for views side by side in one Python array; leave it out",
    ),
    (
        r"and pass a dict to name the classes",
        "and name the classes, as in --set \"class_prior={'a': 0.2, 'b': 0.8}\"",
    ),
    (
        r"unreadable_as_missing=True \(--unreadable-as-missing on the command line\)",
        "--unreadable-as-missing",
    ),
    (
        r"missing_cells, or PerView with an imputer, fills them\s+in\s+another\s+way",
        "--set missing_cells=median takes medians",
    ),
    (r"missing_cells chooses how", "--set missing_cells=median takes medians"),
    (r"replace (\w+) by None \(--unlabelled on the command line\)", r"name \1 with --unlabelled"),
    (r"replace (\w+) by None, or name them in --unlabelled,", r"name \1 with --unlabelled"),
    (r"name it in id_column", "name it with --id"),
    (r"or say which one it is", "or name it with --id COLUMN"),
    (r"\by_true must hold", "the labels must hold"),
    (r"\by must hold labels of at least", "the labels must have at least"),
    (r"\by must hold", "the labels must hold"),
    (r"MendClassifier\(\)\.suggest_first_labels says", "viewmend suggest labels DATA says"),
    (r", as in \(dates - dates\.min\(\)\)\.dt\.days,", ", such as days since the first of them,"),
    (r"\bleave the column out(?! with)", "leave the column out with --leave-out"),
    (r"recode y if it calls", "recode them if they call"),
    (r"write it again with \w+\.\w+\(path\)", "write it again"),
    (r"\[Errno \d+\] ", ""),
    (
        r"raise max_iter, tol or graph_smoothing",
        "raise one of them with --set, as in --set tol=0.001",
    ),
    (
        r"lower n_anchors, or pass Dask arrays",
        "lower it with --set n_anchors=..., or pass --dask local",
    ),
    (r"give Checkpoint another\s+path", "name another file with --checkpoint"),
    (r"; leave it out of set_callbacks", "; leave --checkpoint out"),
    (r"\bCheckpoint keeps", "--checkpoint keeps"),
    (
        r"save it with np\.savez_compressed\(.*?\.\.\.\)",
        "save its arrays anew, as view_0, view_1, ... and y",
    ),
    (r"with np\.savez_compressed\(.*?\.\.\.\)", "with arrays called view_0, view_1, ... and y"),
    (r"number the classes with np\.unique\(.*?\)\[1\]", "number the classes"),
    (
        r"bin a continuous target first, as with numpy\.digitize",
        "make classes of a continuous column first",
    ),
    (r", as with astype\(str\)", ", so that all are text or all are numbers"),
    (r", as in from_frames\(frames, on='id'\)", ", with --id COLUMN"),
    (r"(?:viewmend\.persistence\.|viewmend\.)save wrote", "viewmend fit -o wrote"),
    (
        r"which a copy made by for_prediction has forgotten; ask .* made of",
        "which this model was saved without; fit again with viewmend fit -o",
    ),
    (r"save it with its samples, or fit again", "fit again with viewmend fit -o"),
    (r"; for new samples there is explain_new", "; pass --new DATA for samples of other data"),
    (r"but fit saw no identifiers; pass rows.*", "but fit saw no identifiers; name rows, from 0"),
    (r"(view must be one of .*), or its number, got", r"\1, got"),
    (
        r"costs must be positive numbers, but that of (sample .*?) is (\S+); use exclude .*",
        r"--costs must be positive numbers, but that of \1 is \2; leave the cell empty if nobody "
        r"can label it",
    ),
    (
        r"costs must be positive numbers, but that of (view .*?) is (\S+); use exclude .*",
        r"--cost must be a positive number, but that of \1 is \2; correct it",
    ),
    (r"costs names (.*), which is no view of fit", r"--cost names \1, which is no view of fit"),
    (r"replace it by None, or leave the cells empty", "leave the cells empty"),
    (r"fit with n_rounds=1 or more", "fit with --set n_rounds=1 or more"),
    (r"save the model again", "fit it again with viewmend fit -o"),
    (r"or mark the rows missing(?: in mask)?", "or leave the rows out of the table"),
    (r"pass one label per sample", "name the column of labels with --labels"),
    (r"pass a column as groups if", "pass a column with --groups if"),
    (r"leave out those that are no features", "leave out with --leave-out what is no feature"),
    (r"\bunknown_rate must be", "--unknown-rate must be"),
    (r"\bunknown_rate=(\S+) cannot", r"--unknown-rate \1 cannot"),
    (r"\braise unknown_rate", "raise --unknown-rate"),
    (r"\balpha must be", "--sets must be"),
    (r"\balpha=(\S+) cannot", r"--sets \1 cannot"),
    (r"\braise alpha", "raise --sets"),
    (r"(?<!-)\bbudget must be", "--budget must be"),
    (r"strategy='(\w*)' is not known", r"--strategy \1 is not known"),
    (r"(?<!-)\bgroups must name", "--groups must name"),
    (r"n_splits=(\d+) must be", r"--splits \1 must be"),
    (r"lower n_splits", "lower --splits"),
    (r"mask must be", "the record of observed samples must be"),
    (r"\bX has\b", "the data has"),
    (r"\by has\b", "the column of labels has"),
)
_PATTERNS = [(re.compile(said), instead) for said, instead in WORDS]


def for_command_line(message: object) -> str:
    """A message of the library as a command says it."""
    text = str(message)
    for said, instead in _PATTERNS:
        text = said.sub(instead, text)
    return text
