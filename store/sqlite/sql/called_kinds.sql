-- called_kinds: the kinds whose jobs' ends somebody wants to be told; '' stands for all
select kind from kind_rules where webhook is not null
