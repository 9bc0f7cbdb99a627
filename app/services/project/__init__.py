"""Projections to another class prevalence."""
