"""What a schema of PostgreSQL is made of, from its catalog, for comparing two of them."""

from typing import Any

import psycopg

# The order of a table's columns is no fact: no statement depends on it.
FACTS = """
with space as (select oid, nspname from pg_namespace where nspname = %(schema)s),
ours as (select class.* from pg_class class join space on space.oid = class.relnamespace)
select 'relation', ours.relname, concat_ws(' ', relkind, reloptions::text, relacl::text)
from ours
union all
select 'column', ours.relname || '.' || attname,
       concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, attidentity, attcompression,
                 pg_get_expr(adbin, adrelid))
from ours join pg_attribute on attrelid = ours.oid and attnum > 0 and not attisdropped
left join pg_attrdef on adrelid = attrelid and adnum = attnum where ours.relkind = 'r'
union all
select 'constraint', ours.relname || '.' || conname, pg_get_constraintdef(con.oid)
from ours join pg_constraint con on conrelid = ours.oid
union all
select 'index', ours.relname, pg_get_indexdef(ours.oid) from ours where ours.relkind = 'i'
union all
select 'view', ours.relname, pg_get_viewdef(ours.oid) from ours where ours.relkind = 'v'
union all
select 'trigger', tgname, pg_get_triggerdef(trig.oid)
from ours join pg_trigger trig on tgrelid = ours.oid where not tgisinternal
union all
select 'function', proname || '(' || pg_get_function_identity_arguments(proc.oid) || ')',
       pg_get_functiondef(proc.oid) || proacl::text
from pg_proc proc join space on space.oid = proc.pronamespace
"""


def schema_facts(connection: psycopg.Connection[Any], schema: str) -> set[tuple[str, ...]]:
    """Sort, name and definition of each object; two schemas are equal if these are."""
    return set(connection.execute(FACTS.encode(), {"schema": schema}).fetchall())
