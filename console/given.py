"""What stands on every command line: the options that all verbs share, before the verb or after
it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from musterd.console.completers import complete_settings, complete_tenants
from musterd.console.exits import Complaint, Exit, complaint_about

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from musterd.catalog.kinds import Catalog
    from musterd.config.faults import Fault
    from musterd.config.load import Loaded
    from musterd.config.settings import Settings


class Given:
    """The shared options, gathered from both sides of the verb."""

    def __init__(self) -> None:
        self.config_file: Path | None = None
        self.sets: list[str] = []
        self.json = False
        self.tenant: str | None = None  # None = not named: the default one, or all

    def load(self) -> Loaded:
        """Reads the configuration; raises ConfigError."""
        from musterd.config.load import load

        return load(self.config_file, os.environ, self.sets)

    def load_all(self) -> tuple[Loaded, Catalog]:
        """Reads configuration and catalog; raises ConfigError with all faults of both."""
        from musterd.config.faults import ConfigError
        from musterd.config.load import UnsoundSettings

        try:
            loaded = self.load()
        except UnsoundSettings as unsound:
            faults = [*unsound.faults, *self._catalog_faults(unsound.best)]
            raise ConfigError(faults) from unsound
        catalog = self.catalog(loaded.settings)
        if broken := _schedule_faults(loaded.settings, catalog, loaded.origins):
            raise ConfigError(broken)
        return loaded, catalog

    def _catalog_faults(self, settings: Settings) -> Sequence[Fault]:
        from attrs import evolve

        from musterd.catalog.load import catalog_of
        from musterd.config.faults import ConfigError

        # A path that cannot be read is among the settings' faults already.
        paths = tuple(path for path in settings.catalog.paths if os.access(path, os.R_OK))
        try:
            catalog = catalog_of(evolve(settings, catalog=evolve(settings.catalog, paths=paths)))
        except ConfigError as error:
            return error.faults
        # Where a path cannot be read, its kinds are not unknown.
        is_whole = len(paths) == len(settings.catalog.paths)
        return _schedule_faults(settings, catalog, {}) if is_whole else ()

    def settings(self) -> Settings:
        """The settings as the tenant sees them that was named."""
        return self.seen_by(self.load().settings)

    def seen_by(self, settings: Settings) -> Settings:
        """The node's settings as the tenant sees them that was named. Complains if there is no such
        one.
        """
        from musterd.config.faults import did_you_mean
        from musterd.config.tenant_names import DEFAULT_TENANT
        from musterd.config.tenants import settings_of

        name = DEFAULT_TENANT if self.tenant is None else self.tenant
        if name in settings.tenants:
            return settings_of(settings, name)
        hint = did_you_mean(name, settings.tenants)
        advice = f"{hint} " if hint else ""
        advice += "`musterd config show` lists them under [tenants.NAME]"
        raise Complaint(Exit.UNKNOWN, f"there is no tenant {name!r}", advice)

    def of_node(self, settings: Settings) -> Settings:
        """The node's settings as its default tenant sees them, whichever is named. Complains as
        `seen_by`.
        """
        from musterd.config.tenant_names import DEFAULT_TENANT
        from musterd.config.tenants import settings_of

        self.seen_by(settings)
        return settings_of(settings, DEFAULT_TENANT)

    def catalog(self, settings: Settings) -> Catalog:
        """Reads the catalog; raises ConfigError."""
        from musterd.catalog.load import catalog_of

        return catalog_of(settings)


def _schedule_faults(
    settings: Settings, catalog: Catalog, origins: Mapping[str, str]
) -> Sequence[Fault]:
    if not settings.schedules:
        return ()
    from musterd.manager.duties.schedules.checking import schedule_faults

    return schedule_faults(settings, catalog, origins)


def _take_config(context: click.Context, _option: click.Parameter, value: Path | None) -> None:
    if value is not None:
        _given(context).config_file = value


def _take_sets(context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> None:
    _given(context).sets.extend(values)


def _take_json(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        _given(context).json = True


def _take_tenant(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        _given(context).tenant = value


def _given(context: click.Context) -> Given:
    return context.find_root().ensure_object(Given)


SHARED_OPTIONS = (
    click.Option(
        ["--config"],
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Use this file in place of /etc/musterd/musterd.toml.",
        expose_value=False,
        callback=_take_config,
    ),
    click.Option(
        ["--set"],
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        shell_complete=complete_settings,
        help="Set one setting; may be repeated.",
        expose_value=False,
        callback=_take_sets,
    ),
    click.Option(
        ["--tenant"],
        metavar="NAME",
        shell_complete=complete_tenants,
        help="Whose jobs it is about; default: those of the tenant `default`.",
        expose_value=False,
        callback=_take_tenant,
    ),
    click.Option(
        ["--json"],
        is_flag=True,
        help="Print JSON: one object, or one a line for lists.",
        expose_value=False,
        callback=_take_json,
    ),
)


class Verb(click.Command):
    """A verb.

    Errors that its user can do something about end it with a complaint, never with a traceback.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *SHARED_OPTIONS]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            complaint = complaint_about(error)
            if complaint is None:
                raise
            raise complaint from error


class Verbs(click.Group):
    """A group of verbs, which also takes the shared options."""

    command_class = Verb
    group_class = type  # a group in a group is of the same class

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *SHARED_OPTIONS]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which people meet them
