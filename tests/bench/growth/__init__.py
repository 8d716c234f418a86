"""What a job costs as the work grows: deeper queues, more daemons, tenants and workers."""
