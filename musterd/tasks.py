"""`@task`: a kind where its function is. Loaded wherever a user's module is, also by interpreters
in which nothing of musterd is installed: standard library only.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

if sys.version_info >= (3, 10):  # noqa: UP036 - children may be older than the daemon
    from typing import ParamSpec
else:  # where types are looked at by nobody who runs this
    ParamSpec = TypeVar

if TYPE_CHECKING:
    from typing import Concatenate, Literal, Self

    from musterd.store.async_client import AsyncClient
    from musterd.store.client import Client
    from musterd.workers.context import JobContext

P = ParamSpec("P")
T = TypeVar("T")


class Task(Generic[P, T]):
    """A function that is also the handler of a kind. It is called as ever; `enqueue` makes a job of
    a call. `keys` are those of the kind in a catalog.
    """

    __name__: str
    __qualname__: str

    def __init__(
        self, function: Callable[..., T], kind: str, keys: Mapping[str, Any], *, takes_job: bool
    ) -> None:
        self.function, self.kind, self.keys, self.takes_job = function, kind, keys, takes_job
        self.options: Mapping[str, Any] = {}
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(self, name, getattr(function, name))
        self.line = function.__code__.co_firstlineno
        self._signature = _signature(function, takes_job=takes_job)

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T: ...

    else:

        def __call__(self, *args, **kwargs):
            if _is_job(args, kwargs):
                return self._handle(args[0])
            return self.function(*args, **kwargs)

    @overload
    def enqueue(self, client: Client, /, *args: P.args, **kwargs: P.kwargs) -> int: ...
    @overload
    def enqueue(
        self, client: AsyncClient, /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, int]: ...
    def enqueue(self, client: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Makes a job of this call and gives its id; with an `AsyncClient`, what to await for it.
        Arguments that the function does not take raise `TypeError` here.
        """
        return client.enqueue(self.kind, self.payload(*args, **kwargs), **self.options)

    def job(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """The same call for `enqueue_many`."""
        return {"kind": self.kind, "payload": self.payload(*args, **kwargs), **self.options}

    def payload(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """The payload of such a job: the arguments by name, without those that are left out."""
        bound = dict(self._signature.bind(*args, **kwargs).arguments)
        for parameter in self._signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound.update(bound.pop(parameter.name, {}))
        return bound

    def using(self, **options: Any) -> Self:
        """The same task, whose jobs have these options of `Client.enqueue`: `priority`,
        `delay_seconds`, `connection` and others.
        """
        made = type(self)(self.function, self.kind, self.keys, takes_job=self.takes_job)
        made.options = {**self.options, **options}
        return made

    def _handle(self, job: JobContext) -> T:
        given = [job] if self.takes_job else []
        args, kwargs = self._arguments(job.payload)
        return self.function(*given, *args, **kwargs)

    def _arguments(self, payload: Any) -> tuple[list[Any], dict[str, Any]]:
        """Of a payload, which anybody may have written. Raises `Fatal`: it will be no better."""
        from musterd.workers.context import Fatal  # noqa: PLC0415 - there where jobs run

        where = f"wanted the arguments of {self.__module__}:{self.function.__name__}"
        if not isinstance(payload, dict):
            raise Fatal(f"payload: found {type(payload).__name__}, {where} by name")
        rest: dict[str, Any] = dict(payload)  # pyright: ignore[reportUnknownArgumentType]
        parameters = self._signature.parameters.values()
        first = [one.name for one in parameters if one.kind is one.POSITIONAL_ONLY]
        args = [rest.pop(name) for name in first if name in rest]
        try:
            self._signature.bind(*args, **rest)
        except TypeError as error:
            raise Fatal(f"payload: {error}, {where}") from None
        return args, rest


class AsyncTask(Task[P, T]):
    """As `Task`, of an `async def`; which is what looks at the handler want to see."""

    if not TYPE_CHECKING:

        async def __call__(self, *args, **kwargs):
            return await super().__call__(*args, **kwargs)


class _Decorate:
    """`@task(…)`, for functions that do not take the job."""

    def __init__(self, kind: str | None, keys: Mapping[str, Any], *, takes_job: bool) -> None:
        self._kind, self._keys, self._takes_job = kind, keys, takes_job

    def __call__(self, function: Callable[P, T]) -> Task[P, T]:
        sort: Any = AsyncTask if inspect.iscoroutinefunction(function) else Task
        kind = self._kind or function.__name__
        made: Task[P, T] = sort(function, kind, _plain(self._keys), takes_job=self._takes_job)
        return made


class _DecorateWithJob(_Decorate):
    """The same for functions whose first argument is the job."""

    if TYPE_CHECKING:

        def __call__(  # type: ignore[override]
            self, function: Callable[Concatenate[JobContext, P], T]
        ) -> Task[P, T]: ...


@overload
def task(function: Callable[P, T], /) -> Task[P, T]: ...
@overload
def task(*, kind: str | None = None, takes_job: Literal[True], **keys: Any) -> _DecorateWithJob: ...
@overload
def task(*, kind: str | None = None, takes_job: bool = False, **keys: Any) -> _Decorate: ...
def task(
    function: Any = None, /, *, kind: str | None = None, takes_job: bool = False, **keys: Any
) -> Any:
    """Makes the function the handler of a kind of its own name, or of `kind`. The payload of a job
    are its arguments by name; with `takes_job` the first argument is the `JobContext`. `keys` are
    those of `[kinds.NAME]` in a catalog: `retryable=True`, `retry={"max_retries": 5}`.

    The module is named in `[catalog] modules`.
    """
    sort = _DecorateWithJob if takes_job else _Decorate
    decorate = sort(kind, keys, takes_job=takes_job)
    return decorate if function is None else decorate(function)


def _signature(function: Callable[..., Any], *, takes_job: bool) -> inspect.Signature:
    """Of what stands in a payload. Raises `TypeError` for what cannot be named in one."""
    found = inspect.signature(function)
    parameters = list(found.parameters.values())
    if takes_job and not (parameters and parameters[0].kind in _POSITIONAL):
        raise TypeError(f"@task: {function.__qualname__} takes no job, wanted it as first argument")
    for one in parameters[1 if takes_job else 0 :]:
        if one.kind is one.VAR_POSITIONAL:
            said = f"@task: {function.__qualname__} takes *{one.name}"
            raise TypeError(f"{said}, wanted arguments with names: they stand in the payload")
    return found.replace(parameters=parameters[1:]) if takes_job else found


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _is_job(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether this is the call of a worker. By name: whoever calls a function has not loaded it."""
    if len(args) != 1 or kwargs:
        return False
    return any(
        one.__name__ == "JobContext" and one.__module__ == "musterd.workers.context"
        for one in type(args[0]).__mro__
    )


def _plain(keys: Mapping[str, Any]) -> dict[str, Any]:
    """As a catalog has them: classes of errors by their names."""

    def written(value: Any) -> Any:
        if isinstance(value, type):
            own = getattr(builtins, value.__name__, None) is value
            return value.__name__ if own else f"{value.__module__}.{value.__qualname__}"
        if isinstance(value, (list, tuple)):
            return [written(one) for one in cast("Sequence[Any]", value)]
        return value

    return {name: written(value) for name, value in keys.items()}
