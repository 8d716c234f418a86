-- order_events: puts at most so many drafts in order, and gives the newest position
select {schema}.order_events(%(batch)s)
