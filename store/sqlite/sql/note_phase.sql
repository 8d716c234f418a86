-- note_phase: how far the phase has come that runs
update job_phases set progress = :phase_percent
where job_id = :id and name = :phase and state = 'running'
