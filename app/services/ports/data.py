"""Data that requests name and do not send."""

from typing import Protocol

from app.domain.data import DataListing


class DataSource(Protocol):
    """Finds and opens data that requests name, where the operator allows it. Can be sent to another process."""

    def check(self, uri: str) -> bool:
        """Whether the data lies on this machine, so that looking at it is quick.

        Raises:
            DataNotAllowed: it lies where the operator does not allow it.
        """
        ...

    def files(self, uri: str) -> DataListing:
        """The files that an address names, in the order of their paths.

        Raises:
            DataNotAllowed: one of them lies where the operator does not allow it.
            InvalidInput: there are none, or too many.
            OSError: the place of storage does not answer.
        """
        ...
