"""What is compiled for tests of exported code is kept for the next run."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from exported_code import CC
from places import ROOT


@pytest.fixture(scope="package", autouse=True)
def kept_objects(compiled_code: Path) -> Iterator[None]:
    """Let `hodyn export` compile through helpers/kept_cc.sh, unless somebody chose a compiler."""
    with pytest.MonkeyPatch.context() as environment:
        if CC is not None and "CC" not in os.environ:
            folder = compiled_code.with_name("objects")
            folder.mkdir(mode=0o700, exist_ok=True)
            environment.setenv("CC", str(ROOT / "test" / "helpers" / "kept_cc.sh"))
            environment.setenv("KEPT_CC", CC)
            environment.setenv("KEPT_OBJECTS", str(folder))
        yield
