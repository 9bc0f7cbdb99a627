"""Samples in the order of a score: sorted runs that merge, and what is read off while the order goes by."""
