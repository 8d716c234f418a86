"""`musterd explain`: a past decision in sentences, and what else could have come of it."""
