import trio
from tests.support.stage import Stage
async def test_one(stage: Stage) -> None:
    for i in range(30):
        await trio.sleep(1)
        print(i, trio.current_time())
