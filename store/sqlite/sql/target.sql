-- target: who has a target, or halts it while nobody has it; 1 = without having been claimed for it
select job_id, reserved from target_holders where target = :target
union all
select * from (
  select id, 1 from job_rows
  where target = :target and (state = 'paused' or (state = 'failed' and cleared_at is null))
    and not exists (select 1 from target_holders where target = :target)
  order by id limit 1
)
