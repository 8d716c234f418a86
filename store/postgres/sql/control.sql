-- control: acts on one job, or asks its holder to: cancel, pause, resume, release or clear
select known, state_before, state_after, requested, allowed from {schema}.control_job(%(action)s, %(id)s)
