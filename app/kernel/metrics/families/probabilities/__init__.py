"""What is computed from the probabilities of samples: ranking, proper scores, calibration, IMCP."""
