-- next_webhook: when the next message is due that nobody holds; null = there is none
select min(due_at) from webhooks where state = 'waiting'
