"""Webhooks: who is told of what, and the telling."""
