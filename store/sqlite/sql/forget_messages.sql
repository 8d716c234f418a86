-- forget_messages: deletes messages of deleted jobs that have long been sent
delete from webhooks where id in (
  select id from webhooks
  where type = 'job.deleted' and state <> 'waiting' and ended_at <= :until order by ended_at limit :count
)
