"""What each invariant says. S holds at every moment, L once faults are over, M is musterd's own."""

STATEMENTS = {
    "S1": "what was acknowledged is in the store, or was deleted",
    "S2": "every job was asked for, and has the payload that was asked for",
    "S3": "of jobs with one key there is one, though the request came twice",
    "S4": "one worker at a time holds a job",
    "S5": "each claim has a token of its own",
    "S6": "a write is taken only from the holder of the job",
    "S7": "nobody takes a job before its lease has run out",
    "S8": "a job ends once, and stays as it ended",
    "S9": "a job goes only from states to states that follow them",
    "S10": (
        "attempts are counted one by one, each is begun once, no more than the budget, and no fewer"
    ),
    "S11": "no more jobs are in hand than the cap says, expired or not",
    "S12": "of one target one job is in hand, in order, and none while it is halted",
    "S13": "no job is claimed before it is due",
    "S14": "no claim by a node that drains, nor while the queue is paused",
    "S15": "a canceled job does not start, and what was asked of a holder is done",
    "S16": "a handler does nothing after its lease may have run out, but for one step while frozen",
    "S17": "one node has a duty, works only while it surely has it, and a slot makes one job",
    "S18": "each end of a job that is to be told has one message, with an id of its own",
    "S19": "only jobs that ended long enough ago, with nothing left to tell, are deleted",
    "S20": "events, counts and table tell the same",
    "S21": (
        "a crew has no more and no fewer workers than it may, and no busy one is dismissed early"
    ),
    "L1": "once it is calm, every due job ends in time",
    "L2": "a job in the hand of a node that died is taken from it in time",
    "L3": "a duty whose holder died is had again in time",
    "L4": "after an outage of the store as much is done as before, in time",
    "L5": "a node that is told to stop ends in time, and leaves no process behind",
    "L6": "a node that lives and does nothing is restarted in time",
    "L7": "a job that kills its worker delays the others by no more than the bound",
    "L8": "no job that may run waits longer than the bound",
    "L9": "work that succeeded is not thrown away, but for 1 in 1,000",
    "M1": "a finished phase is not run again",
    "M2": "a claim of which no reply came is asked for by its token, in time",
    "M3": "in calm no lease runs out: who lives renews it, who leaves gives the job back",
    "M4": "a claim takes the first jobs that may run, and hands them out in their order",
    "M5": "on a node starts are in the order in which jobs began, between making and end of each",
}
