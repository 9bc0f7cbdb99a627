"""Projections to other class shares."""
