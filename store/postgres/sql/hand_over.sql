-- hand_over: passes on those of these targets whose holder has ended; a statement of its own, that sees what was committed before it
select {schema}.hand_over(%(targets)s::text[], %(ring)s)
