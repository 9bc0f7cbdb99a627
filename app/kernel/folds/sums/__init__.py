"""What adds up over samples, exactly, in any order."""
