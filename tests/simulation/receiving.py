"""Who is told of the end of jobs: receivers of several sorts. What they were asked is in the history."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping

import trio

from musterd.config.webhook_urls import UrlPolicy
from musterd.workers.runners.http_connection import Answer, HttpTrouble
from tests.simulation.recording import Recorder

OK, GONE, AWAY = 200, 410, 503
WAY_SECONDS = 0.1


class Receivers:
    """`alias` gives messages names that are the same in each run: their own are drawn by SQLite."""

    def __init__(
        self, recorder: Recorder, dice: random.Random, befallen: Callable[[str], None]
    ) -> None:
        self._recorder, self._dice, self._befallen = recorder, dice, befallen
        self._names: dict[str, str] = {}
        self._told = 0

    def alias(self, message_id: str) -> str:
        return self._names.setdefault(message_id, f"m{len(self._names) + 1}")

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, policy: UrlPolicy
    ) -> Answer:
        """As `Sender.post`."""
        del policy
        dice, said = self._dice, json.loads(body)
        await trio.sleep(WAY_SECONDS * dice.random())
        status = self._status(url)
        self._recorder.note(
            "delivery",
            message=self.alias(headers["webhook-id"]),
            job=int(said["data"]["id"]),
            type=said["type"],
            status=status,
        )
        if "slow" in url and dice.random() < 0.4:
            self._befallen("slow_receiver")
            await trio.sleep(10 * dice.random())
        await trio.sleep(WAY_SECONDS * dice.random())
        if "flaky" in url and dice.random() < 0.3:
            self._befallen("answer_lost")
            raise HttpTrouble("the connection broke before there was an answer")
        return Answer(status, {}, b"", overflowed=False)

    def _status(self, url: str) -> int:
        self._told += 1
        if "deaf" in url or ("flaky" in url and self._dice.random() < 0.4):
            self._befallen("receiver_away")
            return AWAY
        if "leaving" in url and self._told > 3:
            self._befallen("receiver_gone")
            return GONE
        return OK
