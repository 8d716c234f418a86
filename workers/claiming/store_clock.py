"""What time it is at the store, for the starts and ends of attempts."""

from __future__ import annotations

import attrs

from musterd.store.leases import Claim


@attrs.define
class StoreClock:
    """One for all attempts of a tenancy: were each start written on what the store's clock says
    when it hears of it, the ways there would decide on the order of starts.

    The store's clock is ahead of this node's, which counts from the machine's start and goes on in
    its sleep, by `_ahead_seconds`. Each answer says between which bounds that lies, and the guess
    is kept as it is within them: so it follows a drift and a step, and not how long an answer took.
    It is never more than it can be, but for a step back.
    """

    _ahead_seconds: float = float("-inf")
    _latest_start_epoch: float = 0.0

    def hear(self, epoch: float, asked_boottime: float, heard_boottime: float) -> None:
        """The store's clock stood there at some moment between these two."""
        least, most = epoch - heard_boottime, epoch - asked_boottime
        self._ahead_seconds = min(max(self._ahead_seconds, least), most)

    def start(self, claim: Claim, boottime: float) -> float:
        """When the attempt starts for which a worker takes this claim. What was claimed for a
        worker has started with its claim, as the store has it, unless another started meanwhile.

        No start is before its claim, nor before one that was given out earlier: while the store's
        clock has been put back, starts wait for it.
        """
        epoch, latest = claim.claimed_epoch, self._latest_start_epoch
        if claim.worker is None or epoch < latest:
            now_epoch = boottime + self._ahead_seconds
            if now_epoch > epoch:  # noqa: PLR1730 - for every job: a call of max costs as much again
                epoch = now_epoch
        if epoch < latest:
            return latest
        self._latest_start_epoch = epoch
        return epoch

    def end(self, boottime: float, start_epoch: float, run_seconds: float) -> float:
        """When an attempt ends: never sooner than its work took."""
        now_epoch, least = boottime + self._ahead_seconds, start_epoch + run_seconds
        return now_epoch if now_epoch > least else least  # noqa: FURB136 - as above
