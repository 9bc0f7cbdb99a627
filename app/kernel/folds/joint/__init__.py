"""What needs the probabilities of all classes beside each other."""
