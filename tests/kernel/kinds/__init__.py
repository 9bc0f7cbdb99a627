"""What metrics are tried on, by what they are computed from: one set of questions for all."""
