-- leave: a node ends as it should, and is forgotten
delete from {schema}.nodes where id = %(id)s
