"""Fixtures for tests of programs that use musterd. pytest loads this wherever musterd is installed,
so it imports nothing of it until a test asks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from musterd.testing import RecordedJobs


@pytest.fixture
def musterd_recording() -> Generator[Callable[..., RecordedJobs]]:
    """`musterd.testing.recording(client, catalog)` until the test has ended."""
    with ExitStack() as blocks:

        def begin(client: Any, catalog: Any = None) -> RecordedJobs:
            from musterd.testing import recording  # noqa: PLC0415 - see above

            return blocks.enter_context(recording(client, catalog))

        yield begin


@pytest.fixture
def musterd_inline() -> Generator[Callable[..., RecordedJobs]]:
    """`musterd.testing.inline(client, catalog)` until the test has ended."""
    with ExitStack() as blocks:

        def begin(client: Any, catalog: Any = None) -> RecordedJobs:
            from musterd.testing import inline  # noqa: PLC0415 - see above

            return blocks.enter_context(inline(client, catalog))

        yield begin
