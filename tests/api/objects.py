"""A server of the protocol of S3. All servers of a process have the same buckets: each module takes others."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer
from pyarrow import fs

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}


@contextmanager
def objects(*buckets: str) -> Iterator[tuple[str, fs.S3FileSystem]]:
    """Its address, and a file system of it; whoever asks within has the credentials."""
    before = {name: os.environ.get(name) for name in CREDENTIALS}
    os.environ.update(CREDENTIALS)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    store = fs.S3FileSystem(endpoint_override=url, region="us-east-1", allow_bucket_creation=True)
    for bucket in buckets:
        store.create_dir(bucket)
    yield url, store
    server.stop()
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})
