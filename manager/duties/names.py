"""The names of all duties, as people, metrics and the store have them."""

EVENTS = "events"
METRICS = "metrics"
REAPING = "reaping"
RETENTION = "retention"
SCHEDULES = "schedules"
STATISTICS = "statistics"
WEBHOOKS = "webhooks"

DUTIES = (EVENTS, METRICS, REAPING, RETENTION, SCHEDULES, STATISTICS, WEBHOOKS)
