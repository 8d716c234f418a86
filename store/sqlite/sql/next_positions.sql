-- next_positions: takes the next :size positions of the log; gives the last of them
update event_head set last = last + :size returning last
