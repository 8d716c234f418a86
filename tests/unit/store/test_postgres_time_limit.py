"""What an answer that does not come is taken for."""

import pytest
import trio
import trio.testing

from musterd.store.errors import OutcomeUnknown
from musterd.store.postgres.time_limit import REPLY_SECONDS, TimeLimit


async def test_what_is_given_up_may_have_been_done(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A frozen server carries it out when it wakes up: it has to be read back."""
    began = trio.current_time()
    told = "settle: no answer within 12 s"
    with pytest.raises(OutcomeUnknown, match=told) as given_up, TimeLimit(10, "settle"):
        await trio.sleep_forever()
    assert given_up.value.trouble == "timeout"
    assert trio.current_time() - began == 10 + REPLY_SECONDS
