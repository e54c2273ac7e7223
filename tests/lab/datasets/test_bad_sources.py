"""Source files that are not what they should be: the message says where and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from subgnn.errors import DataError
from subgnn.lab.datasets import em_user
from subgnn.lab.datasets.em_user import read_workouts
from subgnn.lab.datasets.obo import read_obo
from subgnn.lab.datasets.ppi_bp import read_annotations, read_gene_symbols, read_interactome, read_node_ids
from tests.lab.datasets.samples import gene2go, workout, write_records

Reader = Callable[[Path], object]


def annotations(path: Path) -> object:
    return read_annotations(path, excluded_evidence=("IEA",))


def workouts(path: Path) -> object:
    return list(read_workouts(path))


NO_RECORD = r"record 1: .*not a record.*one JSON object or Python dict per line"


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_obo, "[Term]\nname: nameless\n", r":1: a term without an id; each \[Term\] has a line 'id: '"),
        (read_obo, "[Term]\nid: X:1\n\n[Term]\nid: X:1\n", ":4: term 'X:1' occurs twice"),
        (read_obo, "<html></html>\n", r"it has no \[Term\]; an ontology in OBO is accepted"),
        (read_obo, "", r"it has no \[Term\]"),
        (annotations, "", "the file is empty; accepted: NCBI gene2go"),
        (annotations, "a,b\n", ":1: unknown layout: 'a,b'"),
        (annotations, gene2go([]) + "9606\t1\tGO:1\n", ":2: 3 columns; gene2go has 8"),
        (annotations, "!gaf-version: 2.2\nUniProtKB\tP1\n", ":2: 2 columns; GAF 2 has 15 or more"),
        (annotations, gene2go([(1, "GO:1", "IEA")]), r"no annotation of species 9606 is left \(1 rows dropped\)"),
        (read_gene_symbols, "id\tname\n1\tA\n", ":1: no column 'GeneID'"),
        (read_interactome, "Gene 1,Gene 2\n1,2\n\n12\n", ":4: '12' is not a pair"),
        (read_interactome, "Gene 1,Gene 2\n1,2\n1,x\n", ":3: '1,x' is not a pair"),
        (read_interactome, "Gene 1,Gene 2\n,2\n", ":2: ',2' is"),
        *(
            (read_node_ids, f"node\tGeneID\n{lines}", r".*accepted: ")
            for lines in ("0\t3\n2\t4\n", "0\t3\n1\t3\n", "0\t3\n0\t4\n", "0\tTP53\n", "-1\t3\n")
        ),
        *(
            (workouts, line, NO_RECORD)
            for line in ("hello", "[1, 2]", "{'a': __import__('os').getcwd()}", "{'a': nan}")
        ),
        *((workouts, line, NO_RECORD) for line in ("{" * 5000, "(" * 5000, "{'a': 1", "'x'")),
    ],
)
def test_a_bad_file_says_where(tmp_path: Path, read: Reader, text: str, message: str) -> None:
    path = tmp_path / "source"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"source:? ?{message}"):
        read(path)


def test_long_literals_are_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(em_user, "_MAX_LITERAL", 100)
    path = write_records(tmp_path / "r", [{**workout(7, 1), "note": "a user's"}], style="dict")
    with pytest.raises(DataError, match="not JSON, and it is too long for a Python literal"):
        workouts(path)


@pytest.mark.parametrize("style", ["json", "dict"])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        *(({key: None}, f"no field '{key}'; it has") for key in ("userId", "gender", "id", "sport")),
        ({"gender": "femal"}, "field 'gender' is 'femal'; accepted: female, male, unknown; did you mean 'female'"),
        ({"gender": 1.5}, "field 'gender' is '1.5'; text or a whole number is needed"),
        ({"userId": [1]}, r"field 'userId' is '\[1\]'"),
        ({"userId": True}, "field 'userId' is 'True'"),
        ({"sport": " "}, "field 'sport' is ' '"),
        ({"latitude": None}, "field 'longitude' is given without the other; a route has both latitude and longitude"),
        ({"latitude": 60.1}, "field 'latitude' is '60.1'; a list of degrees is needed"),
        ({"latitude": []}, r"field 'latitude' is '\[\]'"),
        ({"latitude": [1.0]}, "1 latitudes but 2 longitudes"),
        ({"latitude": [91, 0]}, "field 'latitude' begins with '91'; -90 to 90 degrees are accepted"),
        ({"longitude": ["24", 0]}, "field 'longitude' begins with '24'"),
    ],
)
def test_wrong_fields_say_the_record(tmp_path: Path, style: str, wrong: dict[str, Any], message: str) -> None:
    path = write_records(tmp_path / "r", [workout(7, 1), workout(7, 2), workout(7, 3, **wrong)], style=style)
    with pytest.raises(DataError, match=rf"r: record 3: {message}"):
        workouts(path)
