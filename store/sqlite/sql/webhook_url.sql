-- webhook_url: where a message is to go
select url from webhooks where id = :id
