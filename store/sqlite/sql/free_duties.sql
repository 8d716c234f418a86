-- free_duties: whoever had one is dead
update duties set term = null, expires_at = null
