"""Postgres: connections, tables, and what their failures mean."""
