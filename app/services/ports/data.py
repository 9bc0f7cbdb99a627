"""Data that requests name and do not send."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from app.domain.data import DataFile, DataListing
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.matrices import MatrixInput


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

    def again(self, uri: str, files: Sequence[DataFile]) -> DataListing:
        """Some of the files that an address named, perhaps in another process: nothing is listed, all is checked.

        Raises:
            DataNotAllowed: one of them lies where the operator does not allow it.
            InvalidInput: one is not there, or is not as it was when it was listed.
            OSError: the place of storage does not answer.
        """
        ...


class SamplesElsewhere(Protocol):
    """Reads again what evaluations of named data were made of. Can be sent to another process."""

    def check(self, record: EvaluationRecord) -> None:
        """Whether its data may be read now.

        Raises:
            DataNotAllowed: the operator does not allow it, or not any more.
        """
        ...

    def whole(self, record: EvaluationRecord, memory_bytes: int) -> MatrixInput:
        """The input with its samples, in columns of so much memory at most.

        Raises:
            DataNotAllowed: as before.
            InvalidInput: it is not the data that was evaluated (`data_changed`), or cannot be read any more.
            TooLarge: it takes more.
        """
        ...

    def parts(self, record: EvaluationRecord, *, outputs: bool) -> Iterator[MatrixInput]:
        """The input in parts with their samples, of any number of rows: without weights, groups and ignored classes.

        Args:
            record: Of the evaluation.
            outputs: Are the probabilities or scores of the samples needed?

        Raises:
            DataNotAllowed, InvalidInput: as before.
            TooLarge: it has such.
        """
        ...
