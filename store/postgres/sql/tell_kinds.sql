-- tell_kinds: what nodes say of kinds to those who have no catalog; a kind without a rule to speak of is forgotten
with told as (
    select rule.kind, rule.phases, rule.webhook
    from jsonb_to_recordset(%(rules)s::jsonb) as rule (kind text, phases text[], webhook text)
),
forgotten as (
    delete from {schema}.kind_rules known using told
    where known.kind = told.kind and told.phases = '{}' and told.webhook is null
)
insert into {schema}.kind_rules as known (kind, phases, webhook)
select kind, phases, webhook from told where phases <> '{}' or webhook is not null
order by kind
on conflict (kind) do update set phases = excluded.phases, webhook = excluded.webhook
where (known.phases, known.webhook) is distinct from (excluded.phases, excluded.webhook)
