"""Programs without a model."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import wattle


def test_a_program_prints_results() -> None:
    outcome = wattle.run("(out (+ (int (arg 0)) 2)) (out (arg 1))", [1, "two"])
    assert outcome.results == ["3\n", "two\n"] or outcome.results == ["3", "two"]
    assert outcome.text.split() == ["3", "two"]
    assert outcome.duration > 0


def test_values_are_passed_as_json() -> None:
    source = "(let $v (json (arg 0))) (out $v.names.1)"
    assert wattle.run(source, [{"names": ["Ada", "Bob"]}]).text.strip() == "Bob"


def test_a_prepared_program_runs_on_many_threads() -> None:
    program = wattle.Program("(out (* (int (arg 0)) 2))")
    results: dict[int, str] = {}

    def work(number: int) -> None:
        for _ in range(50):
            results[number] = program.run(number).text.strip()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: str(number * 2) for number in range(8)}


def test_a_failed_program_has_code_reason_line_and_outcome() -> None:
    with pytest.raises(wattle.ProgramFailed) as caught:
        wattle.run('(out "before")\n(fs.read "missing.txt")')
    error = caught.value
    assert (error.code, error.line, error.function) == ("ENOENT", 2, "fs.read")
    assert "missing.txt" in error.reason
    assert error.outcome.text.strip() == "before"
    assert isinstance(error, wattle.Error)


def test_an_invalid_program_has_code_and_position() -> None:
    with pytest.raises(wattle.InvalidProgram) as caught:
        wattle.Program('(out 1)\n(out (str.uper "a"))')
    error = caught.value
    assert (error.code, error.line) == ("unknown-function", 2)
    assert error.column is not None and error.hint is not None


def test_nothing_of_the_machine_is_granted_by_default(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("from the machine")
    program = '(out (fs.read "a.txt")) (fs.write "b.txt" "new")'
    with pytest.raises(wattle.ProgramFailed):
        wattle.run(program)
    outcome = wattle.run(program, grants={"files": tmp_path})
    assert outcome.text.strip() == "from the machine"
    assert outcome.changes() == [{"path": "b.txt", "kind": "created", "size": 3}]
    assert outcome.file("b.txt") == b"new"
    assert not (tmp_path / "b.txt").exists()
    wattle.run(program, grants={"files": {"path": tmp_path, "write": True}})
    assert (tmp_path / "b.txt").read_text() == "new"
    with pytest.raises(wattle.Denied) as caught:
        wattle.run('(out (http.get "https://example.com/"))')
    assert caught.value.code == "EACCESS"


def test_variables_and_rules() -> None:
    program = '(out (kv.get "tenant:region"))'
    assert wattle.run(program, grants={"variables": {"region": "eu"}}).text.strip() == "eu"
    with pytest.raises(wattle.Denied):
        wattle.run(program, grants={"variables": {"region": "eu"}, "deny": ["kv"]})
    with pytest.raises(wattle.SettingsError):
        wattle.run(program, grants={"deny": ["no:such"]})
    with pytest.raises(ValueError, match="hostz"):
        wattle.run(program, grants={"hostz": []})  # type: ignore[arg-type]


def test_a_check_lists_diagnostics_and_what_a_program_touches() -> None:
    checked = wattle.check('(out (http.get "https://example.com/"))')
    assert checked.ok and checked.touches["urls"] == ["https://example.com/"]
    checked = wattle.check("(out 1)\n(ouut 2)")
    assert not checked.ok and checked.diagnostics[0].line == 2


def test_the_catalog_lists_and_runs_programs(tmp_path: Path) -> None:
    (tmp_path / "greet.wat").write_text(
        ';;; name = "greet"\n;;; description = "Greets"\n'
        ';;; [[args]]\n;;; name = "who"\n;;; description = "A name"\n'
        '(out "hello {}" (arg 0))\n'
    )
    catalog = wattle.Catalog([tmp_path])
    assert catalog["greet"].description == "Greets" and "greet" in catalog
    assert catalog.run("greet", "Ada").text.strip() == "hello Ada"
    assert len(catalog) > len(wattle.Catalog()) > 50
    assert any("file_read" == one.name for one in catalog.search("read a file"))
    with pytest.raises(KeyError):
        catalog["no_such_program"]
    # Programs call those of the folders, too.
    assert wattle.run('(out (greet "Bob"))', folders=[tmp_path]).text.strip() == "hello Bob"


def test_a_program_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(wattle.ProgramFailed) as caught:
        wattle.run("(while 1 (let $x 1))", timeout=0.05)
    assert caught.value.code == "trap-time"
