"""Fixtures for tests of programs that use musterd. pytest loads this wherever musterd is installed,
so it imports nothing of it until a test asks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from musterd.testing import RecordedJobs


@pytest.fixture
def musterd_recording() -> Generator[Callable[..., RecordedJobs]]:
    """`musterd.testing.recording(client, catalog)` until the test has ended."""
    yield from _until_the_end("recording")


@pytest.fixture
def musterd_inline() -> Generator[Callable[..., RecordedJobs]]:
    """`musterd.testing.inline(client, catalog)` until the test has ended."""
    yield from _until_the_end("inline")


def _until_the_end(
    block: Literal["recording", "inline"],
) -> Generator[Callable[..., RecordedJobs]]:
    with ExitStack() as blocks:

        def begin(client: Any, catalog: Any = None) -> RecordedJobs:
            from musterd import testing  # noqa: PLC0415 - see above

            begun: AbstractContextManager[RecordedJobs] = getattr(testing, block)(client, catalog)
            return blocks.enter_context(begun)

        yield begin
