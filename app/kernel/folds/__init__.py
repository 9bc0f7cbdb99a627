"""One pass over samples in parts: states that merge in any order into the same answers, bit for bit."""
