"""Every behaviour test gets a stage of its own, on a clock that jumps."""

from collections.abc import AsyncGenerator

import pytest
from trio.testing import MockClock

from tests.support.stage import Stage, open_stage


@pytest.fixture
async def stage(autojump_clock: MockClock) -> AsyncGenerator[Stage]:
    del autojump_clock  # it is there to jump
    async with open_stage() as opened:
        yield opened
