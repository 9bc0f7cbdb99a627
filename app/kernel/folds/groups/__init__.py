"""What groups of folded samples hold, and what they add to sampling errors."""
