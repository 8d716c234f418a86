-- tell_events: drafts events that belong to no job, in their order
insert into {schema}.event_drafts (type, common)
select told.type, told.data::jsonb
from unnest(%(types)s::text[], %(datas)s::text[]) with ordinality as told (type, data, place)
order by told.place
