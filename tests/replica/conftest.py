from tests.store.conftest import anyio_backend, make_record, project

__all__ = ["anyio_backend", "make_record", "project"]
