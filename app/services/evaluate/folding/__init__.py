"""Inputs of any number of samples: parts that are forgotten one after another, for each kind."""
