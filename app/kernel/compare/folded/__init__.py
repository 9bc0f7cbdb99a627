"""Runs on the same samples compared on metrics of probabilities, of samples that go by once."""
