"""Source files that are not what they should be: the message says where and why."""

from collections.abc import Callable
from pathlib import Path

import pytest

from subgnn.errors import DataError
from subgnn.lab.datasets.builder import read_obo
from subgnn.lab.datasets.ppi_bp import read_annotations, read_gene_symbols, read_interactome
from tests.lab.datasets.samples import gene2go

Reader = Callable[[Path], object]


def annotations(path: Path) -> object:
    return read_annotations(path, ("IEA",))


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_obo, "[Term]\nname: nameless\n", r":1: a term without an id; each \[Term\] has a line 'id: '"),
        (read_obo, "[Term]\nid: X:1\n\n[Term]\nid: X:1\n", ":4: term 'X:1' occurs twice"),
        (read_obo, "<html></html>\n", r"it has no \[Term\]; an ontology in OBO is accepted"),
        (read_obo, "", r"it has no \[Term\]"),
        (annotations, "", "the file is empty; a table with tax_id, GeneID"),
        (annotations, "a,b\n", ":1: no column 'tax_id'; .*NCBI's gene2go is accepted"),
        (annotations, gene2go([]) + "9606\t1\tGO:1\n", ":2: 3 columns; the header has 8"),
        (annotations, gene2go([(1, "GO:1", "IEA")]), r"no annotation of species 9606 is left \(1 rows dropped\)"),
        (read_gene_symbols, "id\tname\n1\tA\n", ":1: no column 'GeneID'"),
        (read_interactome, "Gene 1,Gene 2\n1,2\n\n12\n", ":4: '12' is not a pair"),
        (read_interactome, "Gene 1,Gene 2\n1,2\n1,x\n", ":3: '1,x' is not a pair"),
        (read_interactome, "Gene 1,Gene 2\n,2\n", ":2: ',2' is"),
    ],
)
def test_a_bad_file_says_where(tmp_path: Path, read: Reader, text: str, message: str) -> None:
    path = tmp_path / "source"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"source:? ?{message}"):
        read(path)
