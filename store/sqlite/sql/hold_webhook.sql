-- hold_webhook: takes one message under a token and for a while, at whose end it is due again
update webhooks set claim_token = :token, tries = tries + 1, due_at = :until, claimed_until = :until where id = :id
