"""A schema made as it was migrated, without migrating it again."""

from typing import Any

import psycopg

# Deleting costs less than truncating where there is little.
_STEPS = """
    select format('delete from %%I.%%I', schemaname, tablename) from pg_tables
    where schemaname = %(schema)s and tablename <> 'schema_migrations'
    union all
    select format('perform setval(''%%I.%%I'', 1, false)', schemaname, sequencename)
    from pg_sequences where schemaname = %(schema)s
    union all
    select format('insert into %%I.%%I default values', %(schema)s, name)
    from unnest(array['queue_state', 'job_counts', 'event_head']) name
"""


def emptying(conn: psycopg.Connection[Any], schema: str) -> bytes:
    """The statement that does it."""
    steps = [line for (line,) in conn.execute(_STEPS.encode(), {"schema": schema})]
    return f"do $$ begin {'; '.join(steps)}; end $$".encode()
