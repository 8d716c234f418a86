"""Real children, real sockets; after each test nothing of them may be left."""

from collections.abc import AsyncGenerator, Iterator

import pytest
import trio

from musterd.workers.runners.http_client import HttpClient
from tests.support.http_calls import trusting
from tests.support.leaks import no_leaks


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    with no_leaks():
        yield


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient]:
    made = HttpClient(make_tls=trusting)
    yield made
    made.close()
    await trio.lowlevel.checkpoint()
