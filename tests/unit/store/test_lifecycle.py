"""The table of states."""

from musterd.store.lifecycle import ENDED, INITIAL, LEASED, TRANSITIONS, JobState


def test_every_state_can_be_reached_from_a_new_job() -> None:
    reached = set(INITIAL)
    while more := {after for before, after in TRANSITIONS if before in reached} - reached:
        reached |= more
    assert reached == set(JobState)


def test_success_and_cancellation_are_final() -> None:
    final = set(JobState) - {before for before, _ in TRANSITIONS}
    assert final == {JobState.SUCCEEDED, JobState.CANCELED}
    assert final < ENDED


def test_a_lease_begins_in_the_queue_and_nowhere_else() -> None:
    begins = {before for before, after in TRANSITIONS if after in LEASED and before not in LEASED}
    assert begins == {JobState.QUEUED}


def test_staying_is_no_transition() -> None:
    assert not any((state, state) in TRANSITIONS for state in JobState)
