-- close_receiver: nothing is sent to this URL until somebody sends again
insert into webhooks_gone (url, at) values (:url, :now) on conflict (url) do update set at = excluded.at
