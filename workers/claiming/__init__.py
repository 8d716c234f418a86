"""Claims in this node's hands: asking for them, handing them to workers, settling them."""
