"""A campaign on two servers, one following the other: the first dies, the second takes its place,
with all that was acknowledged or without the last of it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator
from pathlib import Path
from random import Random

import attrs

from tests.faults.campaign import WARM_SECONDS, befall
from tests.faults.ground import DATABASE, Ground, Way
from tests.faults.judging import Judged, judged
from tests.faults.scene import opened
from tests.faults.sizes import Sizes
from tests.support.postgres_server import PostgresServer
from tests.support.servers import url_of
from tests.support.standby import Standby, caught_up, follow_closely, kill_hard

FAULTS = {"kill": 3, "freeze": 1}  # before the failover, and again after it
OUTAGE_SECONDS = (0.0, 3.0)
LOST_SECONDS = (0.5, 2.0)  # of what was written last, where some is lost
LOST_JOBS_MIN = 4  # of which clients were told: the first may have been written before
TOLD_SECONDS = 30.0


@attrs.frozen
class Pair:
    primary: PostgresServer
    standby: Standby
    ground: Ground


@contextlib.contextmanager
def laid_twice(nodes: int) -> Generator[Pair]:
    """Servers that follow each other; who connects is led to the one that takes writes."""
    with PostgresServer() as primary:
        primary.create_database(DATABASE)
        with Standby(primary) as standby:
            url = f"{url_of(primary, standby, database=DATABASE)}?target_session_attrs=read-write"
            yield Pair(primary, standby, Ground(standby, url, (Way(url),) * nodes, url))


def run(folder: Path, seed: int, sizes: Sizes, *, lossy: bool) -> Judged:
    began, rng = time.monotonic(), Random(f"{seed} failover")
    some = attrs.evolve(sizes, faults=FAULTS)
    with laid_twice(sizes.nodes) as pair, opened(folder, seed, some, pair.ground) as scene:
        time.sleep(WARM_SECONDS)
        befall(scene, seed)
        since = None
        if lossy:
            caught_up(pair.primary)
            since = scene.recorder.fault("shipping_ends")
            pair.standby.follow_nobody()
            scene.workload.wait_until_told(LOST_JOBS_MIN, TOLD_SECONDS)
            time.sleep(rng.uniform(*LOST_SECONDS))
        else:
            follow_closely(pair.primary)
            time.sleep(WARM_SECONDS)
        lost = {} if since is None else {"lost_since_t": since}
        scene.recorder.fault("failover", **lost)
        kill_hard(pair.primary)
        time.sleep(rng.uniform(*OUTAGE_SECONDS))
        pair.standby.promote()
        scene.notebook.tally["failover_lossy" if lossy else "failover"] += 1
        befall(scene, seed + 1)
        scene.recorder.fault("heal")
        return judged(scene, seed, began)
