"""The option `webhook`, in the same words whichever way a job is made."""

import json
from collections.abc import Generator
from typing import Any

import psycopg
import pytest

from musterd import Client, InputRefused
from tests.contract.rigs import PostgresRig, Rig
from tests.contract.test_client import url_of
from tests.support.webhook_urls import GOOD, REFUSED

URL = "https://example.com/hook?a=%20&b=[1]"


@pytest.fixture
def client(shared: Rig) -> Generator[Client]:
    with Client(url_of(shared)) as made:
        yield made


async def test_it_arrives_whichever_way_it_goes(shared: Rig, client: Client) -> None:
    asked = {"kind": "a", "webhook": URL}
    made = [client.enqueue("a", webhook=URL)]
    made += client.enqueue_many([asked])
    made += client.enqueue_many([{**asked, "dedup_key": "k"}])
    made += client.enqueue_many([{**asked, "delay_seconds": 0}, ("b", None)])[:1]
    if isinstance(shared, PostgresRig):
        made += ids(shared, "enqueue('a', webhook => %s)", URL)
        made += ids(shared, "enqueue_many(%s)", json.dumps([asked]))
        made += ids(shared, "enqueue_many(%s)", json.dumps([{**asked, "dedup_key": "l"}]))
    told = {"url": URL, "sent_at": None, "attempts": 0}
    assert [client.job(job_id)["webhook"] for job_id in made] == [told] * len(made)
    assert client.job(client.enqueue("a"))["webhook"] is None
    record = await shared.engine.jobs.get(made[0])
    assert record is not None
    assert record.webhook is not None


async def test_sql_takes_and_refuses_the_same_urls(postgres_rig: PostgresRig) -> None:  # noqa: ASYNC124 - its fixture waits
    for url in GOOD:
        assert len(ids(postgres_rig, "enqueue('a', webhook => %s)", url)) == 1
    for bad, wanted in REFUSED:
        asked = json.dumps([{"kind": "a", "webhook": bad}])
        with pytest.raises(psycopg.DataError) as refused:
            ids(postgres_rig, "enqueue_many(%s)", asked)
        assert str(refused.value).startswith(f"webhook: wanted {wanted}")
        assert "hunter2" not in str(refused.value.diag.message_primary)
    with (
        pytest.raises(InputRefused, match="webhook: wanted a URL that starts with"),
        Client(postgres_rig.url) as client,
    ):
        client.enqueue("a", webhook="gopher://x")


async def test_what_is_inserted_directly_is_a_url_too(postgres_rig: PostgresRig) -> None:  # noqa: ASYNC124 - its fixture waits
    for url in GOOD:
        postgres_rig.raw(f"insert into job_rows (kind, webhook) values ('a', '{url}')")
    for bad, _ in REFUSED:
        if isinstance(bad, str) and "65536" not in bad and ":0/" not in bad:
            quoted = bad.replace("'", "''")
            with pytest.raises(psycopg.errors.CheckViolation):
                postgres_rig.raw(f"insert into job_rows (kind, webhook) values ('a', E'{quoted}')")


def ids(rig: PostgresRig, call: str, *values: Any) -> list[int]:
    with psycopg.connect(rig.url, autocommit=True) as connection:
        return [
            row[0]
            for row in connection.execute(f"select musterd.{call}".encode(), values).fetchall()
        ]
