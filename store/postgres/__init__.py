"""store.postgres: the Engine on PostgreSQL 14 to 18, psycopg driven natively on Trio."""
