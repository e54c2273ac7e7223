"""Files of graphs, subgraphs and datasets; only this package knows conventions other than ids from 0."""

from pathlib import Path

from subgnn.data.dataset import Dataset, Problems
from subgnn.data.formats.bundle import BUNDLE
from subgnn.data.formats.folder import FOLDER
from subgnn.data.formats.format import FileFormat, LabelFormat, ReadOptions
from subgnn.data.formats.graph_tables import read_edges
from subgnn.data.formats.libraries import GRAPH_FILES
from subgnn.errors import DataError

FORMATS: tuple[FileFormat, ...] = (
    FOLDER,
    BUNDLE,
    *GRAPH_FILES,
    FileFormat(lambda path: True, read_graph=read_edges),  # a table of edges: every other file
)


def read_dataset(path: str | Path, *, id_base: int | None = None, labels: LabelFormat | None = None) -> Dataset:
    """Read a dataset: a folder or a bundle; the first id and the form of labels go before its card."""
    problems = Problems()
    return problems.require(read_with_problems(Path(path), ReadOptions(id_base, labels), problems), path)


def read_with_problems(path: Path, options: ReadOptions, problems: Problems) -> Dataset | None:
    """Read a dataset; what is wrong goes to ``problems``, and None comes back where it cannot be used."""
    form = next(found for found in FORMATS if found.accepts(path))
    try:
        if form.read_dataset is None:
            raise DataError("this is not a dataset", where=str(path), hint="a dataset folder or a bundle is accepted")
        return form.read_dataset(path, options, problems)
    except DataError as error:
        problems.add(error)
        return None
