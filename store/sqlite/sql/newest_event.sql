-- newest_event: the newest position there ever was
select last from event_head
