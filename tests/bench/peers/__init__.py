"""musterd as a contestant beside other job queues, in one run of the peers' benchmark."""
