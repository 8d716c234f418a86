-- expire_all: every lease has run out as of now; for a daemon that starts alone on its file
update job_rows set lease_expires_at = min(lease_expires_at, :now)
where state = 'assigned' or state = 'running'
