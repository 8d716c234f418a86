"""`musterd instances`: starts and drains instances of a systemd template as there is work."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import click
import trio

from musterd.config.load import resolve_store_url
from musterd.config.settings import Settings
from musterd.config.tenants import settings_of
from musterd.console.command import CommandLine, Verb, option_reader, seconds_option
from musterd.console.instances.plan import Memory, Plan, State, plan, states_text
from musterd.console.instances.systemctl import Instances, SystemctlFailed
from musterd.console.output import Complaint, Exit, complain, say
from musterd.manager.scaling.nodes import nodes_for
from musterd.manager.scaling.work_ahead import ask_workers_desired
from musterd.store.errors import StoreError
from musterd.store.opening import visit
from musterd.store.words import plural

MOST_MAX = 100
EVERY_SECONDS = 15.0
LINGER_SECONDS = 300.0
TEMPLATE = re.compile(r"[A-Za-z0-9:_.-]+@")


def _template_of(text: str) -> str:
    if TEMPLATE.fullmatch(text) is None:
        raise ValueError(f"found {text!r}, wanted a template's name, as musterd@")
    return text


@click.command(cls=Verb)
@click.option(
    "--most",
    type=click.IntRange(1, MOST_MAX),
    required=True,
    metavar="N",
    help="There are the instances 1 to N; none other is touched.",
)
@click.option(
    "--template",
    callback=option_reader(_template_of),
    default="musterd@",
    show_default=True,
    metavar="UNIT@",
    help="What stands before their numbers.",
)
@seconds_option(
    "--every", "every_seconds", within=(1, 3600), default=EVERY_SECONDS, about="How often to look."
)
@seconds_option(
    "--linger", "linger_seconds", within=(0, 86_400), default=LINGER_SECONDS,
    about="How long fewer must have been enough before one is drained.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Look once, say what there is, and do nothing.")
@click.pass_obj
def instances(
    cli: CommandLine,
    /,
    most: int,
    template: str,
    every_seconds: float,
    linger_seconds: float,
    dry_run: bool,
) -> None:
    """Start and drain systemd instances as there is work.

    Keeps as many of musterd@1 to musterd@N running as there is work for: one at least, N at most.
    Those with the highest numbers are drained first, and finish their jobs. Needs PostgreSQL, and
    the right to start units. Runs until it is stopped; the instances then stay as they are.
    """
    settings = cli.settings_for()
    stores = [settings_of(settings, name) for name in settings.tenants]
    _check_engines(stores)
    keeper = Keeper(settings, stores, Instances(template, most), linger_seconds)
    if dry_run:
        trio.run(keeper.report, cli.answer)
    else:
        trio.run(keeper.run, every_seconds)


def _check_engines(stores: Sequence[Settings]) -> None:
    """One file is one daemon's: a second one would be refused."""
    for one in stores:
        if resolve_store_url(one, os.environ).startswith("sqlite:"):
            what = f"the store of tenant {one.tenant} is a file, which one daemon has for itself"
            advice = "instances need PostgreSQL: set store.url, or run one musterd.service"
            raise Complaint(Exit.CONFIGURATION, what, advice)


@attrs.define(eq=False)
class Keeper:
    """Looks, decides and acts. Nobody is drained while the store is away."""

    settings: Settings
    stores: Sequence[Settings]  # of each tenant
    instances: Instances
    linger_seconds: float
    _memory: Memory = attrs.field(factory=Memory, init=False)
    _warned: str = attrs.field(default="", init=False)

    async def run(self, every_seconds: float) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self.look()
            except SystemctlFailed as failed:
                self._warn_once(f"nothing was changed: {failed}")
            await trio.sleep(every_seconds)

    async def look(self) -> Plan:
        """Once, and acts."""
        desired, states = await self._desired(), await self.instances.states()
        chosen, self._memory = plan(
            desired, states, self._memory, trio.current_time(), self.linger_seconds
        )
        for line in changes_text(chosen, desired, states, self.instances.unit):
            say(line)
        if chosen.start:
            await self.instances.start(chosen.start)
        if chosen.drain:
            await self.instances.drain(chosen.drain)
        failed = [self.instances.unit(one) for one, state in states.items() if state == "failed"]
        if failed:
            self._warn_once(f"failed, and left alone: {', '.join(failed)}")
        elif desired is not None:
            self._warned = ""
        return chosen

    async def report(self, answer: Callable[..., None]) -> None:
        desired, states = await self._desired(), await self.instances.states()
        found: dict[str, Any] = {
            "desired": desired,
            "instances": {self.instances.unit(one): state for one, state in states.items()},
        }
        answer(found, f"{_wanted_text(desired)}; {states_text(states)}")

    async def _desired(self) -> int | None:
        """Of all tenants together: each node serves all of them. None = a store is away."""
        workers = 0
        for one in self.stores:
            try:
                workers += await visit(one, partial(ask_workers_desired, settings=one))
            except StoreError as error:  # also of a store that its first node is yet to set up
                self._warn_once(
                    f"nobody knows how much work there is, and none is drained: {error}"
                )
                return None
        return nodes_for(workers, self.settings.workers.max_count)

    def _warn_once(self, text: str) -> None:
        """Not at each look again."""
        if text != self._warned:
            self._warned = text
            complain(f"musterd: warning: {text}")


def changes_text(
    chosen: Plan,
    desired: int | None,
    states: Mapping[int, State],
    unit: Callable[[int], str],
) -> Iterator[str]:
    """A line for what is started, and one for what is drained."""
    for verb, numbers in (("starting", chosen.start), ("draining", chosen.drain)):
        if numbers:
            named = ", ".join(map(unit, numbers))
            yield f"{verb} {named}: {_wanted_text(desired)}, {states_text(states)}"


def _wanted_text(desired: int | None) -> str:
    if desired is None:
        return "nobody knows how many nodes there is work for"
    return f"there is work for {plural(desired, 'node')}"
