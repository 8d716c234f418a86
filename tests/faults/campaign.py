"""A campaign: one seed says what befalls whom and when; several tracks of faults go on at once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import psycopg

from tests.faults.ground import laid
from tests.faults.judging import Judged, judged
from tests.faults.line_faults import LineFaults
from tests.faults.node_faults import NodeFaults
from tests.faults.scene import Scene, opened
from tests.faults.server_faults import ServerFaults
from tests.faults.sizes import TRACKS, Sizes

LOG = logging.getLogger(__name__)
TRIES_MAX = 12  # of one fault, until it has really happened
WARM_SECONDS = 2.0
PAUSE_SECONDS = (0.5, 2.0)

Fault = Callable[[Random], bool]


def run(folder: Path, seed: int, sizes: Sizes) -> Judged:
    """A whole campaign, from the start of the server to the checker's word."""
    began = time.monotonic()
    with laid(sizes.nodes, sizes.memory_mb) as ground, opened(folder, seed, sizes, ground) as scene:
        time.sleep(WARM_SECONDS)
        befall(scene, seed)
        scene.recorder.fault("heal")
        return judged(scene, seed, began)


def befall(scene: Scene, seed: int) -> None:
    """All tracks at once, until all that was wanted has happened."""
    deeds = deeds_on(scene)
    troubles: list[BaseException] = []

    def go(number: int, wanted: Sequence[str]) -> None:
        try:
            follow(scene, deeds, wanted, Random(f"{seed} {number}"))
        except BaseException as error:
            troubles.append(error)
            raise

    tracks = [wanted_of(scene.sizes, names) for names in TRACKS]
    threads = [
        threading.Thread(target=go, args=(number, wanted), name=f"track {number}")
        for number, wanted in enumerate(tracks)
        if wanted
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if troubles:
        raise troubles[0]


def wanted_of(sizes: Sizes, names: Sequence[str]) -> list[str]:
    return [name for name in names for _ in range(sizes.faults.get(name, 0))]


def follow(scene: Scene, deeds: Mapping[str, Fault], wanted: Sequence[str], rng: Random) -> None:
    """One fault after the other, in the order that the rng say."""
    order = rng.sample(wanted, len(wanted))
    for name in order:
        for _ in range(TRIES_MAX):
            time.sleep(rng.uniform(*PAUSE_SECONDS))
            if done(name, deeds[name], rng):
                scene.notebook.tally[name] += 1
                break
        else:
            raise AssertionError(f"{name} did not come about in {TRIES_MAX} tries")


def done(name: str, deed: Fault, rng: Random) -> bool:
    """Where the server is away, another track's fault is under way: it is tried again."""
    try:
        return deed(rng)
    except psycopg.OperationalError as error:
        LOG.info("%s: %s", name, error)
        time.sleep(0.5)
        return False


def deeds_on(scene: Scene) -> Mapping[str, Fault]:
    found: dict[str, Fault] = {}
    for faults in (NodeFaults(scene), LineFaults(scene), ServerFaults(scene)):
        for name in dir(faults):
            if not name.startswith("_"):
                found[name] = getattr(faults, name)
    return found
