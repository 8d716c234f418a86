-- held_duties: who has which duty until when
select duty, term, node_id, expires_at, hand_overs from duties
