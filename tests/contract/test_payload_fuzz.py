"""Payloads and results by lot, through both engines: what is taken comes out as it went in, what is
not is refused before anything is written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from musterd.store.errors import InputRefused
from musterd.store.input import check_payload, decode_payload
from musterd.store.jobs import NewJob
from tests.contract.job_tools import ending, settle, take
from tests.contract.rigs import Rig
from tests.fuzz.target import corpus_of
from tests.fuzz.targets.payload import (
    DEPTH_MAX,
    LIMITS,
    as_floats,
    json_text,
    text_of,
    why_refused,
)

COUNT = 2_500
BATCH = 250


def texts(seed: int) -> list[str]:
    rng = Random(seed)
    made = [json_text(rng, rng.randint(0, DEPTH_MAX)) for _ in range(COUNT)]
    return [text_of(whole) for whole in corpus_of("payload").values()] + made


@pytest.mark.parametrize("seed", range(2))
async def test_what_is_taken_comes_out_as_it_went_in(rig: Rig, seed: int) -> None:
    good = [text for text in texts(seed) if why_refused(text) is None]
    assert len(good) > COUNT / 10
    for start in range(0, len(good), BATCH):
        await _there_and_back(rig, good[start : start + BATCH])


async def _there_and_back(rig: Rig, batch: Sequence[str]) -> None:
    for text in batch:
        check_payload(text, LIMITS)
    ids = await rig.engine.jobs.enqueue([NewJob("report", text) for text in batch])
    claims = await take(rig.engine, workers=len(batch))
    assert [claim.id for claim in claims] == ids
    for claim, text in zip(claims, batch, strict=True):
        assert as_floats(decode_payload(claim.payload)) == as_floats(json.loads(text)), text
    settled = [ending(one, result=text) for one, text in zip(claims, batch, strict=True)]
    assert not (await settle(rig.engine, *settled)).rejected
    for job_id, text in zip(ids[::25], batch[::25], strict=True):
        record = await rig.engine.jobs.get(job_id)
        assert record is not None
        assert record.result is not None
        assert as_floats(decode_payload(record.payload)) == as_floats(json.loads(text))
        assert as_floats(decode_payload(record.result)) == as_floats(json.loads(text))


def test_what_is_not_taken_is_refused_before_it_reaches_a_store() -> None:
    bad = [text for text in texts(3) if why_refused(text) is not None]
    assert len(bad) > COUNT / 10
    for text in bad:
        with pytest.raises(InputRefused):
            check_payload(text, LIMITS)


async def test_a_store_that_is_handed_one_all_the_same_keeps_what_it_can(rig: Rig) -> None:
    """By a program that does not ask first: it is refused as what it is, or read as it is; never is
    the store at fault.
    """
    kept = 0
    for text in [one for one in texts(5) if why_refused(one) is not None][:300]:
        try:
            await rig.engine.jobs.enqueue([NewJob("report", text)])
        except InputRefused:
            continue
        kept += 1
    claims: list[Any] = await take(rig.engine, workers=kept) if kept else []
    assert len(claims) == kept
    await settle(rig.engine, *(ending(claim) for claim in claims))
    assert (await rig.engine.queue.counts()).enqueued_total == kept
