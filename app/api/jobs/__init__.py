"""Requests that are answered later: how they are put aside, and how they are carried out."""
