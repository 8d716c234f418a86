-- leave: a node ends as it should, and is forgotten
delete from nodes where id = :id
