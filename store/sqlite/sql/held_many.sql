-- held_many: of the jobs in :ended (JSON: id and token of each first) those that are leased under their token, as they stand before something is written about them
select id, kind, target, attempt, state, node, worker, request, webhook
from (select json_extract(value, '$[0]') as ended_id, upper(json_extract(value, '$[1]')) as token from json_each(:ended)) as ended
cross join job_rows on id = ended_id
where hex(claim_token) = token and +state in ('assigned', 'running')
