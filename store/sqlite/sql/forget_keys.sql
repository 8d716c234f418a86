-- forget_keys: deletes keys whose time is over
delete from dedup_keys where key in (
  select key from dedup_keys where until is not null and until <= :now order by until limit :count
)
