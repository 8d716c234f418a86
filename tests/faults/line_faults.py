"""What befalls the ways to the server: cut at a commit, silent, without their pooler."""

from __future__ import annotations

import time
from random import Random

from tests.faults.scene import Scene
from tests.faults.watching import within
from tests.support.wire_proxy import Cut

CUT_SECONDS = 4.0  # so long a commit is waited for
OUTAGE_SECONDS = (0.1, 1.5)


class LineFaults:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def cut_reply(self, rng: Random) -> bool:
        """The server has committed, and nobody hears of it."""
        return self._cut("reply", rng)

    def cut_request(self, rng: Random) -> bool:
        """The server never hears that it is to commit."""
        return self._cut("request", rng)

    def half_open(self, rng: Random) -> bool:
        """Bytes vanish on all lines of one node or of the clients; no connection ends."""
        line = rng.choice(self._scene.ground.lines)
        self._scene.recorder.fault("half_open", line=self._scene.ground.lines.index(line))
        line.fall_silent()
        time.sleep(rng.uniform(0.5, 2) * self._scene.sizes.lease_seconds)
        line.speak()
        self._scene.recorder.fault("half_open_over")
        return True

    def bouncer_restart(self, rng: Random) -> bool:
        bouncer = self._scene.ground.bouncer
        assert bouncer is not None
        self._scene.recorder.fault("bouncer_restart")
        bouncer.stop()
        time.sleep(rng.uniform(*OUTAGE_SECONDS))
        bouncer.start()
        return True

    def _cut(self, what: Cut, rng: Random) -> bool:
        line = rng.choice(self._scene.ground.lines)
        before = len(line.made)
        self._scene.recorder.fault(f"cut_{what}", line=self._scene.ground.lines.index(line))
        line.cuts.append(what)
        if not within(CUT_SECONDS, lambda: len(line.made) > before):
            line.cuts.clear()
        return len(line.made) > before
