"""Where an estimator computes, and input that lies on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from viewmend.backend.namespace import to_numpy, torch_device
from viewmend.backend.torch_candidates import products_in
from viewmend.backend.torch_gpu import cuda_is_there, import_torch, is_out_of_memory
from viewmend.data.input_arrays import as_dense
from viewmend.exceptions import InvalidParameterError, TooLargeError

Thing = TypeVar("Thing")
Method = TypeVar("Method", bound=Callable[..., Any])

# What was copied to a device, as long as the original is there.
_COPIES: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def kept_on(device: str | None, thing: Thing, copy: Callable[[Thing], Thing]) -> Thing:
    """What ``copy`` makes of a thing for a device, made once; without a device the thing itself.

    A fitted model is large, and many predictions ask for it.
    """
    if device is None:
        return thing
    copies = _COPIES.setdefault(thing, {})
    if device not in copies:
        copies[device] = copy(thing)
    made: Thing = copies[device]
    return made


def keep_copy(device: str | None, thing: Any, made: Any) -> None:
    """Tell `kept_on` of a copy that a fit has left on a device."""
    if device is not None:
        _COPIES.setdefault(thing, {})[device] = made


def digits_kept(device: str | None) -> AbstractContextManager[None]:
    """Let no product of float32 on a device of PyTorch lose digits, as users may have allowed.

    That is a setting of the process, which searches change for a while; so one fit or prediction
    runs on its devices at a time.
    """
    return nullcontext() if device is None else products_in("ieee")


def keeping_digits(method: Method) -> Method:
    """A method of an estimator within `digits_kept`, for the device that it fits on."""

    @wraps(method)
    def run(self: Any, *arguments: Any, **options: Any) -> Any:
        with digits_kept(check_device(self.device, self._input_device)):
            return method(self, *arguments, **options)

    return cast("Method", run)


@contextmanager
def memory_errors_named(who: str, remedy: str) -> Iterator[None]:
    """Turn out-of-memory errors of a GPU into errors with a remedy.

    What is needed is estimated before a fit; others may take memory meanwhile.
    """
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        msg = f"the memory of the GPU is full, {who} needs more of it; {remedy} ({error})"
        raise TooLargeError(msg) from error


def input_device(X: Any) -> str | None:
    """Device of the first PyTorch tensor of the input; None where it has none."""
    entries = X.values() if isinstance(X, Mapping) else X if isinstance(X, (list, tuple)) else (X,)
    return next(filter(None, map(torch_device, entries)), None)


def on_host(X: Any) -> tuple[Any, str | None]:
    """Input with NumPy arrays in place of PyTorch tensors, and the device of the first of these.

    Input that is no array, list, tuple or dict, or has no tensors, comes back as it is, with None.
    """
    device = input_device(X)
    if device is None:
        return X, None
    if isinstance(X, Mapping):
        return {name: _numpy_of_tensor(entry) for name, entry in X.items()}, device
    if isinstance(X, (list, tuple)):
        return [_numpy_of_tensor(entry) for entry in X], device
    return _numpy_of_tensor(X), device


def _numpy_of_tensor(thing: Any) -> Any:
    if torch_device(thing) is None:
        return thing
    # Of floats there are some that NumPy does not know.
    return as_dense(thing, "a tensor") if thing.is_floating_point() else to_numpy(thing)


def check_device(device: str | None, of_input: str | None) -> str | None:
    """Device to compute on, by PyTorch's name; None for NumPy.

    If ``device`` is None, it is the device of the input. Raises an error if PyTorch or a GPU is
    requested and not available.
    """
    if device is None:
        return of_input
    if device == "auto":
        # The compiled kernels of NumPy are faster than PyTorch without a GPU.
        return "cuda" if cuda_is_there() else None
    import_torch()
    if device == "cuda" and not cuda_is_there():
        msg = (
            "device must be one that PyTorch finds, got 'cuda' and no GPU; set device='auto' to "
            "use a GPU where there is one, or device=None for NumPy"
        )
        raise InvalidParameterError(msg)
    return device
