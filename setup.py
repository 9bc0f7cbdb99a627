"""What pyproject.toml cannot say: the migrations lie at the top of a clone, and inside the package in a wheel."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent


class WithMigrations(build_py):
    """The package, with what `alembic.ini` names beside it."""

    def run(self) -> None:
        """Copy the migrations into what becomes the wheel; an editable installation finds them in the clone."""
        super().run()
        if self.editable_mode:
            return
        folder = Path(self.build_lib) / "app" / "migrations"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(HERE / "alembic", folder / "alembic", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copyfile(HERE / "alembic.ini", folder / "alembic.ini")


setup(cmdclass={"build_py": WithMigrations})
