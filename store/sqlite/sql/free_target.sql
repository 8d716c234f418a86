-- free_target: nobody has this target
delete from target_holders where target = :target
