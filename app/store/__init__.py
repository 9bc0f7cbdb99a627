"""Remembers: the Postgres side of the ports in `app.services.ports`."""
