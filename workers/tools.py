"""What runners are given: limits, the children's interpreter and environment, the clock."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from musterd.config.children import children_environment, secrets_of
from musterd.config.settings import LiveSettings, Settings
from musterd.workers.joblog import LogBounds
from musterd.workers.outcome import Contained, log_contained
from musterd.workers.runners.results import AnswerLimits

if TYPE_CHECKING:
    from musterd.workers.runners.http_client import HttpClient

_MIB = 1_048_576


@attrs.define(eq=False)
class Connections:
    """The HTTP client of a tenant's jobs and webhooks, made when it is first needed: it costs
    nothing where nobody makes calls.
    """

    _client: HttpClient | None = attrs.field(default=None, init=False)

    def client(self) -> HttpClient:
        if self._client is None:
            from musterd.workers.runners.http_client import HttpClient

            self._client = HttpClient()
        return self._client

    def close(self) -> None:
        """Ends what lies idle; safe to call twice, and where there never was a client."""
        if self._client is not None:
            self._client.close()


@attrs.frozen
class Tools:
    """One for the whole node. `boottime` is the clock that leases are trusted by. Its maker
    closes `connections` when all workers have left.
    """

    limits: AnswerLimits
    boottime: Callable[[], float]
    variables: Mapping[str, str] = attrs.field(repr=False)  # the daemon's own environment
    environment: Mapping[str, str] = attrs.field(repr=False)  # of Python children
    python: str = sys.executable
    max_jobs_per_child: int = 1_000
    max_child_memory_bytes: int = 512 * _MIB
    start_timeout_seconds: float = 20.0
    max_frame_bytes: int = 4 * _MIB  # the largest message to or from a child
    connections: Connections = attrs.field(factory=Connections)  # of HTTP kinds
    contained: Callable[[Contained], None] = log_contained
    held_memory: Callable[[str, int], None] = lambda _kind, _bytes: None  # of a child, after a job


class LiveTools:
    """Owned by a tenancy: the tools that the settings of the moment ask for. A reload replaces them
    whole, so that workers replace children that may run old code.
    """

    def __init__(
        self,
        settings: LiveSettings,
        boottime: Callable[[], float],
        environ: Mapping[str, str],
        contained: Callable[[Contained], None] = log_contained,
        held_memory: Callable[[str, int], None] = lambda _kind, _bytes: None,
    ) -> None:
        self._settings, self._boottime, self._environ = settings, boottime, environ
        tools = make_tools(settings.now, boottime, environ)
        tools = attrs.evolve(tools, contained=contained, held_memory=held_memory)
        self.now = tools  # for reading, as `LiveSettings.now`
        settings.subscribe(self._renew)

    def close(self) -> None:
        """Lets go of what runners share."""
        self.now.connections.close()

    def _renew(self) -> None:
        tools = make_tools(self._settings.now, self._boottime, self._environ)
        kept = self.now
        self.now = attrs.evolve(
            tools,
            connections=kept.connections,
            contained=kept.contained,
            held_memory=kept.held_memory,
        )


def log_bounds(settings: Settings) -> LogBounds:
    return LogBounds(settings.limits.max_log_bytes, settings.limits.max_log_lines)


def make_tools(
    settings: Settings, boottime: Callable[[], float], environ: Mapping[str, str]
) -> Tools:
    """The tools that the settings ask for. Children get `environ` without what is ours."""
    limits, executor = settings.limits, settings.executor
    largest = max(limits.max_payload_bytes, limits.max_result_bytes, limits.max_error_bytes)
    return Tools(
        limits=AnswerLimits(
            result_bytes_max=limits.max_result_bytes,
            depth_max=limits.max_payload_depth,
        ),
        boottime=boottime,
        variables=dict(environ),
        environment=children_environment(environ, secrets_of(settings)),
        python=settings.catalog.python or sys.executable,
        max_jobs_per_child=executor.max_jobs_per_child,
        max_child_memory_bytes=executor.max_child_memory_mb * _MIB,
        start_timeout_seconds=executor.start_timeout_seconds,
        max_frame_bytes=largest + _MIB,
    )
