-- tell_kinds: what nodes say of a kind to those who have no catalog; writes nothing where that is known
insert into kind_rules (kind, phases, webhook) values (:kind, :phases, :webhook)
on conflict (kind) do update set phases = excluded.phases, webhook = excluded.webhook
where kind_rules.phases <> excluded.phases or kind_rules.webhook is not excluded.webhook
