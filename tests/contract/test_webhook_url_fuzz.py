"""URLs of webhooks by lot: PostgreSQL's own check says what ours says, and its table takes what
both take.
"""

from __future__ import annotations

from random import Random

import psycopg
import pytest

from musterd.config.faults import Unfit
from musterd.config.webhook_urls import check_webhook_url
from tests.contract.rigs import SCHEMA, PostgresRig
from tests.fuzz.target import corpus_of
from tests.fuzz.targets.urls import URLS

COUNT = 6_000
VERDICT = """
create function pg_temp.verdict(url text) returns text language plpgsql as $$
begin
    perform check_webhook(to_jsonb(url));
    insert into job_rows (kind, webhook) values ('report', url);
    return null;
exception when others then
    return sqlerrm;
end $$
"""


@pytest.mark.parametrize("seed", range(2))
async def test_both_say_the_same_in_the_same_words(postgres_rig: PostgresRig, seed: int) -> None:  # noqa: ASYNC124 - its fixture waits
    urls = sorted(set(drawn(seed)))
    with psycopg.connect(postgres_rig.url, autocommit=True) as connection:
        connection.execute(f"set search_path = {SCHEMA}".encode())
        connection.execute(VERDICT)
        asked = "select url, pg_temp.verdict(url) from unnest(%s::text[]) url"
        found: dict[str, str | None] = dict(connection.execute(asked, [urls]).fetchall())
    assert len(found) == len(urls)
    wrong = {url: (ours(url), found[url]) for url in urls if not agree(ours(url), found[url])}
    assert wrong == {}
    assert sum(one is None for one in found.values()) > COUNT / 20


def drawn(seed: int) -> list[str]:
    """Of those that PostgreSQL can hold as text at all."""
    rng, corpus = Random(seed), tuple(corpus_of("urls").values())
    made = [*corpus, *(URLS.make(rng, corpus) for _ in range(COUNT))]
    texts = (whole.decode("utf-8", "replace").partition("|")[0] for whole in made)
    return [text for text in texts if "\0" not in text]


def ours(url: str) -> str | None:
    try:
        check_webhook_url(url)
    except Unfit as unfit:
        return unfit.wanted
    return None


def agree(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return one == other
    # Zeros before a port are refused by the table, or what else is wrong is told first.
    return one.startswith("a port") or other.startswith(f"webhook: wanted {one}")
