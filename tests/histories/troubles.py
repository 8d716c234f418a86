"""What goes wrong on the way, each when its time has come."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import trio

from tests.histories.ground import Ground
from tests.histories.plan import Plan, Trouble
from tests.simulation.recording import Recorder
from tests.support.wire_proxy import WireProxy


class Scene(Protocol):
    ground: Ground
    plan: Plan
    recorder: Recorder
    met: Counter[str]
    killed: Counter[int]


async def make(scene: Scene, trouble: Trouble) -> None:
    scene.met[trouble.what] += 1
    name = f"n{trouble.seat}" if trouble.seat < scene.plan.nodes else f"c{trouble.seat}"
    scene.recorder.note("fault", what=trouble.what, node=name)
    proxy = scene.ground.seats[trouble.seat].proxy
    assert proxy is not None
    match trouble.what:
        case "kill":
            scene.killed[trouble.seat] += 1
            proxy.hang_up()
        case "line_broken":
            proxy.hang_up()
        case "reply_cut":
            proxy.cuts.append("reply")
        case "request_cut":
            proxy.cuts.append("request")
        case "sessions_ended":
            scene.ground.end_sessions()
        case "server_crash":
            await trio.to_thread.run_sync(scene.ground.server.stop_hard)
        case _:
            await _stand_still(proxy, trouble)
    await trio.lowlevel.checkpoint()


async def _stand_still(proxy: WireProxy, trouble: Trouble) -> None:
    """What is said meanwhile waits, or is lost and the line breaks."""
    if trouble.what == "line_held":
        proxy.hold()
        await trio.sleep(trouble.seconds)
        proxy.let_go()
    else:
        proxy.fall_silent()
        await trio.sleep(trouble.seconds)
        proxy.speak()
        proxy.hang_up()
