-- forget_kind: nothing is to be said of this kind any more
delete from kind_rules where kind = :kind
