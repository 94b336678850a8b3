"""How loops and estimators call their callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self, TypeVar

from viewmend.callbacks.protocol import Callback, Fit, LoopProgress, ResumableProblem, StepRecord
from viewmend.exceptions import InvalidParameterError
from viewmend.parameters import short

try:
    from sklearn.callback import CallbackSupportMixin, FitCallback, with_callbacks
except ImportError:  # scikit-learn before 1.9, which has no callbacks
    Method = TypeVar("Method", bound=Callable[..., Any])

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    class FitCallback:  # type: ignore[no-redef]
        """What nothing is an instance of."""

    def with_callbacks(method: Method) -> Method:
        """The method itself."""
        return method


__all__ = ["WatchedMixin", "kept_or_made", "reason_to_stop", "starting_point", "with_callbacks"]

# Attribute of an estimator that has the callbacks of the fit under way.
_WATCHERS = "_watchers"

Result = TypeVar("Result")


def reason_to_stop(callbacks: Iterable[Callback], record: StepRecord, state: Any) -> str | None:
    """Call all as ``callback(record, state)``; the status with which the first that stops does so.

    A true answer stops; a string is the status, which otherwise is "stopped". None goes on.
    """
    answers = [callback(record, state) for callback in callbacks]
    stops = [answer if isinstance(answer, str) else "stopped" for answer in answers if answer]
    return stops[0] if stops else None


class WatchedMixin(CallbackSupportMixin):
    """An estimator whose fit can be watched.

    Its ``fit`` is decorated by `with_callbacks`, which ends scikit-learn's callbacks, and does its
    work within ``_watched(max_rounds)``.
    """

    _callbacks: tuple[Callback, ...] = ()

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """What `set_callbacks` attached, but for callbacks of scikit-learn."""
        return self._callbacks

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set the callbacks of the next fits, replacing earlier ones; see `viewmend.callbacks`.

        Parameters
        ----------
        *callbacks : callables, or callbacks of scikit-learn
            The callbacks. ``clone`` copies callbacks of scikit-learn only.

        Returns
        -------
        self
        """
        for callback in callbacks:
            _check_callback(callback)
        theirs = [callback for callback in callbacks if isinstance(callback, FitCallback)]
        self._callbacks = tuple(c for c in callbacks if not isinstance(c, FitCallback))
        # Under a name that scikit-learn's searches look for.
        self.__dict__.pop("_skl_callbacks", None)
        if theirs:
            self._skl_callbacks = theirs
        return self

    def _round_parameters(self) -> Mapping[str, str] | None:
        """Parameters that the rounds depend on, for checkpoints; None if there is no resuming."""
        return None

    def tell_stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        """Call ``on_stage(name, done, total)`` of all callbacks when a step begins.

        Parameters
        ----------
        name : str
            What begins, in words that follow the name of the estimator, such as "calibration 1 of
            3".
        done, total : int
            Number of such steps that are done, and their total; ``total`` is None if it is not
            known.
        """
        for callback in self._all_callbacks():
            _tell(callback, "on_stage", name, done, total)

    def _all_callbacks(self) -> list[Callback]:
        """Those of the fit under way, the same objects from its begin to its end; or new ones."""
        watchers: list[Callback] | None = vars(self).get(_WATCHERS)
        return self._new_callbacks() if watchers is None else watchers

    def _new_callbacks(self) -> list[Callback]:
        tasks = [_SklearnTasks(self)] if hasattr(self, "_callback_fit_ctx") else []
        return [*self.callbacks, *tasks]

    @contextmanager
    def _watched(self, max_rounds: int) -> Iterator[None]:
        """Tell all callbacks that a fit begins and, whatever happens, that it has ended."""
        fit = Fit(self, max_rounds, self._round_parameters())
        if hasattr(self, "_skl_callbacks"):
            self._init_callback_context(max_subtasks=max_rounds)
        with ExitStack() as endings:
            watchers = self._new_callbacks()
            setattr(self, _WATCHERS, watchers)
            endings.callback(delattr, self, _WATCHERS)
            for callback in watchers:
                endings.push(_ending(callback, fit))
                _tell(callback, "on_fit_begin", fit)
            yield


def starting_point(callbacks: Sequence[Callback], problem: ResumableProblem) -> LoopProgress | None:
    """Rounds, in NumPy arrays, that a callback kept of an earlier run; None to begin anew.

    The first whose ``starting_point(problem)`` has any gives them; ``on_resume(history)`` tells
    them to all, or ``on_rounds_begin()`` that there are none.
    """
    # All of them are asked, for they learn of the problem by it.
    answers: list[LoopProgress | None] = [
        _tell(callback, "starting_point", problem) for callback in callbacks
    ]
    progress = next((answer for answer in answers if answer is not None), None)
    if progress is None:
        for callback in callbacks:
            _tell(callback, "on_rounds_begin")
    else:
        for callback in callbacks:
            _tell(callback, "on_resume", progress.history)
    return progress


def kept_or_made(
    callbacks: Sequence[Callback], problem: ResumableProblem, make: Callable[[], Result]
) -> Result:
    """What a callback kept of an earlier run, or else what ``make`` gives.

    The first whose ``kept_geometry(problem)`` has any gives it; ``on_geometry(problem, geometry)``
    tells it to all.
    """
    answers = (_tell(callback, "kept_geometry", problem) for callback in callbacks)
    kept = next((answer for answer in answers if answer is not None), None)
    geometry: Result = make() if kept is None else kept
    for callback in callbacks:
        _tell(callback, "on_geometry", problem, geometry)
    return geometry


class _SklearnTasks:
    """A fit as the root task of scikit-learn's callbacks, and its rounds as tasks within it.

    A round is told when it ends, because only then is it known that there was one.
    """

    def __init__(self, estimator: WatchedMixin) -> None:
        self.estimator = estimator

    @property
    def root(self) -> Any:
        return self.estimator._callback_fit_ctx

    def on_fit_begin(self, _fit: Fit) -> None:
        self.root.call_on_fit_task_begin(estimator=self.estimator)

    def __call__(self, _round: Any, _state: Any) -> bool:
        task = self.root.subcontext(task_name="round")
        task.call_on_fit_task_begin(estimator=self.estimator)
        return bool(task.call_on_fit_task_end(estimator=self.estimator))

    def on_fit_end(self, _fit: Fit, error: BaseException | None) -> None:
        if error is None:
            self.root.call_on_fit_task_end(estimator=self.estimator)


def _check_callback(callback: Any) -> None:
    usable = callable(callback) or isinstance(callback, FitCallback)
    if isinstance(callback, type) or not usable:
        msg = (
            f"a callback must be a callable of a round and a state, or an instance of one of "
            f"scikit-learn's callbacks, got {short(callback)}; see viewmend.callbacks"
        )
        raise InvalidParameterError(msg)


def _tell(callback: Any, hook: str, *news: Any) -> Any:
    """What a hook answers; None where the callback has no such hook."""
    return getattr(callback, hook)(*news) if hasattr(callback, hook) else None


def _ending(callback: Any, fit: Fit) -> Callable[..., None]:
    def end(_kind: Any, error: BaseException | None, _traceback: Any) -> None:
        _tell(callback, "on_fit_end", fit, error)

    return end
