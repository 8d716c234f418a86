"""What systemd says of units, and what it is told to do with them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

import attrs
import trio

from musterd.console.instances.plan import STATES, State

ANSWER_SECONDS = 30.0


class SystemctlFailed(Exception):
    """systemctl did not do as it was told; the text says what it said."""


@attrs.frozen
class Instances:
    """`template`: as `musterd@`. `program`: what is run, which a test replaces."""

    template: str
    most: int
    program: str = "systemctl"

    def unit(self, number: int) -> str:
        return f"{self.template}{number}.service"

    async def states(self) -> Mapping[int, State]:
        """Of each that there may be."""
        numbers = range(1, self.most + 1)
        units = [self.unit(number) for number in numbers]
        said = await self._call("show", "--property=Id,ActiveState", "--", *units)
        found = dict(_properties(part) for part in said.strip().split("\n\n"))
        try:
            return {number: STATES[found[self.unit(number)]] for number in numbers}
        except KeyError as error:
            raise SystemctlFailed(f"systemctl show said nothing usable of {error}") from None

    async def start(self, numbers: Sequence[int]) -> None:
        await self._call("start", "--no-block", "--", *map(self.unit, numbers))

    async def drain(self, numbers: Sequence[int]) -> None:
        """systemd sends TERM, and waits until their jobs are done."""
        await self._call("stop", "--no-block", "--", *map(self.unit, numbers))

    async def _call(self, *arguments: str) -> str:
        try:
            with trio.fail_after(ANSWER_SECONDS):
                done = await trio.run_process(
                    [self.program, *arguments],
                    capture_stdout=True,
                    capture_stderr=True,
                    check=False,
                )
        except OSError as error:
            raise SystemctlFailed(f"{self.program}: {error.strerror}") from error
        except trio.TooSlowError:
            said = f"systemctl {arguments[0]} took longer than {ANSWER_SECONDS:g} s"
            raise SystemctlFailed(said) from None
        return _checked(done, arguments[0])


def _checked(done: subprocess.CompletedProcess[bytes], verb: str) -> str:
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}"
        raise SystemctlFailed(f"systemctl {verb}: {said}")
    return done.stdout.decode(errors="replace")


def _properties(part: str) -> tuple[str, str]:
    lines = (line.partition("=") for line in part.splitlines())
    found = {name: value for name, _, value in lines}
    return found.get("Id", ""), found.get("ActiveState", "")
