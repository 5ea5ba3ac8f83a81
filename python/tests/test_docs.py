"""The examples run."""

from __future__ import annotations

import re
import runpy
import sys
import types
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1]


def test_the_examples_of_the_page_run(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (FOLDER.parent / "docs" / "python.md").read_text()
    module = types.ModuleType("docs")
    monkeypatch.setitem(sys.modules, "docs", module)
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert len(blocks) > 5
    for block in blocks:
        # The annotations of the page are evaluated, as those of a module are.
        exec(compile(block, "python.md", "exec"), module.__dict__)


@pytest.mark.parametrize(
    "example", sorted((FOLDER / "examples").glob("*.py")), ids=lambda it: it.name
)
def test_the_examples_run(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
