"""The examples of the page on events run, and show what there is."""

from tests.contract.job_tools import put
from tests.contract.rigs import PostgresRig
from tests.support.pages import blocks, page


async def test_the_examples_run(postgres_rig: PostgresRig) -> None:
    await put(postgres_rig.engine, 0, 0)
    looks, ordering = (block.text for block in blocks(page("events.md"), "sql"))
    assert postgres_rig.raw(ordering) == [(2,)]
    first, of_job, failures = looks.strip().splitlines()
    assert [row[0] for row in postgres_rig.raw(first)] == [1, 2]
    assert [row[1] for row in postgres_rig.raw(of_job.replace("42", "1"))] == ["job.enqueued"]
    assert postgres_rig.raw(failures) == []
