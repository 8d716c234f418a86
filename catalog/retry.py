"""When a failed job is tried again."""

from hashlib import blake2b

from musterd.catalog.kinds import RetryPolicy

_HASH_BYTES = 6  # 48 bits: a float holds each such fraction exactly
_HASH_RANGE = 1 << 8 * _HASH_BYTES
_COUNT_MAX = 1 << 53  # a float holds whole numbers up to here


def delay_seconds(policy: RetryPolicy, failures: int, job_id: int, attempt: int) -> float:
    """Gives the delay after `failures` failed tries, never above `policy.max_seconds`.

    The jitter is a hash of job and attempt: it spreads load, and the same job always gets the
    same schedule. Raises ValueError if nothing has failed yet.
    """
    if failures < 1:
        raise ValueError(f"failures is {failures}, wanted 1 or more: no failure, no delay")
    longest = min(policy.max_seconds, _backoff_seconds(policy, min(failures, _COUNT_MAX)))
    if policy.jitter == "none":
        return longest
    shortest = longest / 2 if policy.jitter == "equal" else 0.0
    return shortest + (longest - shortest) * _fraction(job_id, attempt)


def _backoff_seconds(policy: RetryPolicy, failures: int) -> float:
    if policy.backoff == "fixed":
        return policy.base_seconds
    if policy.backoff == "linear":
        return policy.base_seconds * failures
    try:
        return policy.base_seconds * policy.factor ** (failures - 1)
    except OverflowError:
        return policy.max_seconds if policy.base_seconds else 0.0


def _fraction(job_id: int, attempt: int) -> float:
    """Gives a number from 0 up to, not including, 1."""
    digest = blake2b(f"{job_id}/{attempt}".encode(), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, "big") / _HASH_RANGE
