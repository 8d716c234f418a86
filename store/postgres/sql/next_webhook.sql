-- next_webhook: how many seconds until a message is due that nobody holds; below 0 = since then; null = there is none
select extract(epoch from min(due_at) - clock_timestamp())::float8 from {schema}.webhooks where state = 'waiting'
