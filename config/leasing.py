"""The pace of a lease: when it is renewed, how long that may take, when its holder must stop."""

from attrs import frozen

from musterd.config.settings import Settings

_HEARTBEAT_SECONDS_MAX = 2.0
_MARGIN_SECONDS_MAX = 2.0
_REAP_INTERVAL_SECONDS_MAX = 1.5


@frozen
class LeasePlan:
    """The times of a lease, all in seconds, none zero."""

    lease_seconds: float
    heartbeat_seconds: float
    request_timeout_seconds: float
    margin_seconds: float
    reap_interval_seconds: float

    @property
    def lease_seconds_min(self) -> float:
        """The shortest lease that survives two failed renewals."""
        return 3 * self.heartbeat_seconds + self.request_timeout_seconds + self.margin_seconds


def lease_plan(settings: Settings) -> LeasePlan:
    """Resolves the zeros of `[leases]` against the length of the lease."""
    lease_seconds = settings.workers.lease_timeout_seconds
    chosen = settings.leases
    heartbeat_seconds = chosen.heartbeat_seconds or min(_HEARTBEAT_SECONDS_MAX, lease_seconds / 6)
    return LeasePlan(
        lease_seconds=lease_seconds,
        heartbeat_seconds=heartbeat_seconds,
        request_timeout_seconds=chosen.request_timeout_seconds or heartbeat_seconds * 3 / 4,
        margin_seconds=chosen.margin_seconds or min(_MARGIN_SECONDS_MAX, lease_seconds / 10),
        reap_interval_seconds=(
            chosen.reap_interval_seconds or min(_REAP_INTERVAL_SECONDS_MAX, lease_seconds / 4)
        ),
    )
