-- open_receiver: counts the receiver of a message as there again
delete from webhooks_gone where url = (select url from webhooks where id = :id)
