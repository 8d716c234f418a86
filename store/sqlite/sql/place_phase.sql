-- place_phase: a phase has this place; one that is not known yet is to come, and so is one that failed before
insert into job_phases (job_id, place, name) values (:job_id, :place, :name)
on conflict (job_id, name) do update set place = excluded.place,
  state = case job_phases.state when 'succeeded' then 'succeeded' else 'pending' end
