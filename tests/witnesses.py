"""Libraries that tests ask for the same numbers, imported when the first test asks: collecting the tests loads none."""

from importlib import import_module
from typing import Any
from warnings import catch_warnings, simplefilter


class _Later:
    """A module that is imported when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        # Pytest asks whatever a test module has whether it is a test or a fixture.
        if attribute != "__all__" and attribute.startswith(("_", "pytest")):
            raise AttributeError(attribute)
        with catch_warnings():
            simplefilter("ignore")
            return getattr(import_module(self._name), attribute)


sk: Any = _Later("sklearn.metrics")
sm: Any = _Later("statsmodels.api")
imb: Any = _Later("imblearn.metrics")
pycm: Any = _Later("pycm")
