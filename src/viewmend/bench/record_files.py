"""Records from the text of their files, which others may have written or changed.

Only what obeys the rules here becomes a record; so tables and figures need not ask again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from viewmend.bench.fields import Check
from viewmend.bench.metrics import METRICS
from viewmend.bench.runs import STATUSES, InvalidRecordError, Record, RunKey
from viewmend.parameters import AnyOf, Integer, OneOf, Real, Rule, short

TEXT = Check("text", lambda given: isinstance(given, str))
TABLE = Check("an object", lambda given: isinstance(given, Mapping))
SHARE = Real(0, 1)
# What a run that diverges leaves: it may be NaN, or infinite.
NUMBER = Check("a number", lambda given: type(given) in (int, float))
NUMBERS = Check(
    "a list of numbers", lambda given: isinstance(given, list) and all(map(NUMBER.accepts, given))
)
NOTHING = OneOf(None)
PLAIN = Check("a number, text, true, false, null or a list of them", lambda one: _is_plain(one))
SETTING = Check("a list of pairs of a name and a value", lambda given: _is_setting(given))
HISTORY = Check("a list of rounds", lambda given: _is_history(given))

RECORD: Mapping[str, Rule] = {
    "key": TABLE,
    "status": OneOf(*STATUSES),
    "result": TABLE,
    "timings": TABLE,
    "environment": TABLE,
    "message": TEXT,
}
KEY: Mapping[str, Rule] = {
    **dict.fromkeys(("measure", "protocol", "data", "method", "rules", "implementation"), TEXT),
    **dict.fromkeys(("missing_rate", "label_rate"), SHARE),
    "setting": SETTING,
    "repetition": Integer(0),
}
# What our measures leave; those of plugins may leave anything under other names.
RESULT: Mapping[str, Rule] = {
    **dict.fromkeys((*METRICS, "observed_pairs", "complete_samples"), SHARE),
    **dict.fromkeys(("n_samples", "n_labelled"), Integer(0)),
    "n_iter": AnyOf(Integer(0), NOTHING),
    "seeds": TABLE,
    "hidden_error": NUMBER,
    "history": HISTORY,
}
ROUND: Mapping[str, Rule] = {
    "iteration": Integer(0),
    "alpha": AnyOf(NUMBERS, NOTHING),
    **dict.fromkeys(
        ("change_F", "change_Q", "change_alpha", "primal_residual", "accuracy"),
        AnyOf(NUMBER, NOTHING),
    ),
    "inner": Check("a list of steps", lambda given: given is None or _are_steps(given)),
}
STEP: Mapping[str, Rule] = {"alpha_error": NUMBER, "P_error": NUMBER}


def read_record(text: str | bytes) -> Record:
    """The record of a file.

    Parameters
    ----------
    text : str or bytes
        JSON, as `Record.to_dict` has it; parts that are empty may be absent.

    Raises
    ------
    InvalidRecordError
        Says which entry is wrong, and what may stand there.
    """
    fields = _parsed(text)
    _check(fields, RECORD, "the record", {"key", "status"})
    unknown = [name for name in fields if name not in RECORD]
    if unknown:
        msg = f"the record has an entry {unknown[0]!r}; expected none but {', '.join(RECORD)}"
        raise InvalidRecordError(msg)
    _check(fields.get("result", {}), RESULT, "result")
    timings = fields.get("timings", {})
    _check(timings, dict.fromkeys(timings, Real(0)), "timings")
    return Record(**{**fields, "key": _key(fields["key"])})


def read_key(text: str | bytes) -> RunKey:
    """The key of a run from one line of JSON, see `RunKey.text`."""
    return _key(_parsed(text))


def _key(fields: Mapping[str, Any]) -> RunKey:
    _check(fields, KEY, "key", KEY.keys() - {"rules", "implementation"})
    if fields.keys() - KEY.keys():
        msg = f"key must have no entries but {', '.join(KEY)}, got {short(sorted(fields))}"
        raise InvalidRecordError(msg)
    return RunKey.from_dict(fields)


def _parsed(text: str | bytes) -> dict[str, Any]:
    try:
        fields = json.loads(text)
        # Halves of surrogate pairs, which JSON can hold, cannot be shown or written anywhere.
        json.dumps(fields, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        msg = f"{type(error).__name__}: {error}"
        raise InvalidRecordError(msg) from error
    if not isinstance(fields, dict):
        msg = f"the file must hold an object, got {short(fields)}"
        raise InvalidRecordError(msg)
    return fields


def _check(
    given: Mapping[str, Any],
    rules: Mapping[str, Rule],
    where: str,
    required: Any = frozenset(),
) -> None:
    """Raise unless every entry that has a rule obeys it."""
    for name, rule in rules.items():
        if name in given and not rule.accepts(given[name]):
            msg = f"{name} of {where} must be {rule.expected}, got {short(given[name])}"
            raise InvalidRecordError(msg)
        if name not in given and name in required:
            msg = f"{where} lacks {name}, which must be {rule.expected}"
            raise InvalidRecordError(msg)


def _obeys(given: object, rules: Mapping[str, Rule]) -> bool:
    return isinstance(given, Mapping) and all(
        rules[name].accepts(value) for name, value in given.items() if name in rules
    )


def _is_plain(given: Any) -> bool:
    if isinstance(given, list):
        return all(map(_is_plain, given))
    return given is None or isinstance(given, (bool, int, float, str))


def _is_setting(given: Any) -> bool:
    return isinstance(given, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and _is_plain(pair[1])
        for pair in given
    )


def _are_steps(given: Any) -> bool:
    return isinstance(given, list) and all(_obeys(step, STEP) for step in given)


def _is_history(given: Any) -> bool:
    """Rounds with their numbers, and as many weights of views in each."""
    if not isinstance(given, list) or not all(_obeys(round_, ROUND) for round_ in given):
        return False
    rounds: Sequence[Mapping[str, Any]] = given
    weights = {len(one["alpha"]) for one in rounds if one.get("alpha") is not None}
    return len(weights) <= 1 and all("iteration" in one for one in rounds)
