"""Who was refused how often, and the audit log: refusals, and whatever changed something."""

from __future__ import annotations

import logging
from collections import OrderedDict

from attrs import define, field

from musterd.manager.log import ROOT, event, event_of_list

AUDIT = f"{ROOT}.audit"
AT_ONCE_MAX = 10  # refusals that a peer is told of at once; one more each second
PAUSE_SECONDS = 1.0  # before each further one
PEERS_MAX = 1_000  # that are remembered; the one refused longest ago is forgotten


@define(eq=False)
class Refusals:
    """Refusals for want of a valid token, by peer. Right tokens are never slowed down, so nobody
    can keep out others who come from the same address.
    """

    _by_peer: OrderedDict[str, tuple[float, float]] = field(
        factory=OrderedDict[str, tuple[float, float]], init=False
    )  # how many, as of when

    def pause_seconds(self, peer: str, now: float) -> float:
        """Counts a refusal; returns how long its answer is to wait."""
        count, at = self._by_peer.pop(peer, (0.0, now))
        count = min(max(0.0, count - (now - at)) + 1, AT_ONCE_MAX + 1)
        self._by_peer[peer] = (count, now)
        if len(self._by_peer) > PEERS_MAX:
            self._by_peer.popitem(last=False)
        return PAUSE_SECONDS if count > AT_ONCE_MAX else 0.0


def audit_log() -> logging.Logger:
    """Written whatever `log.level` is."""
    log = logging.getLogger(AUDIT)
    log.setLevel(logging.INFO)
    return log


def audit(log: logging.Logger, *, is_done: bool, **fields: object) -> None:
    """What was done has a line each. Of the rest, only so many in a time have: whoever has no
    rights shall not fill the log.
    """
    if is_done:
        event_of_list(log, logging.INFO, "action", **fields)
    else:
        event(log, logging.WARNING, "refused", **fields)
