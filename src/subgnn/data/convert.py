"""Convert datasets and graphs between files: any format of :mod:`subgnn.data.formats` to a folder or a bundle."""

from pathlib import Path

from subgnn.data.dataset import Dataset, Problems
from subgnn.data.edge_store import MEMORY, EdgeStore
from subgnn.data.formats import FORMATS, read_dataset
from subgnn.data.formats.bundle import BUNDLE, SUFFIX, read_bundle, write_bundle
from subgnn.data.formats.croissant import write_croissant
from subgnn.data.formats.folder import EDGE_ATTRIBUTES, FOLDER, edge_attributes_bytes, read_folder, write_folder
from subgnn.data.formats.format import ReadOptions
from subgnn.data.read_tables import read_tables
from subgnn.errors import DataError
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.storage.files import refuse_existing, scratch_folder


def convert(
    source: Path,
    destination: Path,
    *,
    subgraphs: Path | None = None,
    nodes: Path | None = None,
    reading: ReadOptions = ReadOptions(),
    overwrite: bool = False,
    croissant: bool = False,
    memory: int = MEMORY,
    on_progress: OnProgress = ignore,
) -> Dataset:
    """Write a dataset, or a graph with its tables, as a bundle if the destination ends in .subgnn, or as a folder."""
    as_bundle = destination.suffix == SUFFIX
    if croissant and as_bundle:
        raise DataError("only the files of a folder are described", where="--croissant", hint="write a folder")
    if not source.exists():
        raise DataError("no such file or folder", where=str(source), hint="check the path")
    if FOLDER.accepts(source) or BUNDLE.accepts(source):
        given = {"--labels": reading.label_table, "--aliases": reading.aliases, "--repeated": reading.repeated}
        for option, value in given.items():
            if value is not None:
                what, hint = "this option is for tables, but a dataset is given", "leave it out"
                raise DataError(what, where=option, hint=hint)
    in_memory = edge_attributes_bytes(source)
    if in_memory > memory:
        what = f"edges with types or times are read into memory, which takes about {in_memory / 1e9:,.1f} GB"
        raise DataError(what, where=str(source / EDGE_ATTRIBUTES), hint="raise --memory, or remove the file")
    if source.is_dir() and as_bundle and subgraphs is None and nodes is None and not in_memory:
        refuse_existing(destination, overwrite=overwrite)
        problems = Problems()
        with scratch_folder(destination) as scratch:  # where the graph is built, as it may be larger than memory
            store = EdgeStore(scratch, memory=memory, on_progress=on_progress)
            dataset = problems.require(read_folder(source, reading, problems, store=store), source)
            on_progress("writing the bundle", 0, 1)
            write_bundle(dataset, destination, overwrite=overwrite)
        on_progress("writing the bundle", 1, 1)
        return read_bundle(destination, check="never")
    dataset = _read(source, destination.name.removesuffix(SUFFIX), subgraphs, nodes, reading)
    (write_bundle if as_bundle else write_folder)(dataset, destination, overwrite=overwrite)
    if croissant:
        write_croissant(dataset, destination)
    return dataset


def _read(source: Path, name: str, subgraphs: Path | None, nodes: Path | None, reading: ReadOptions) -> Dataset:
    found = next(each for each in FORMATS if each.accepts(source))
    if found.read_dataset is not None:
        for given, option in ((subgraphs, "--subgraphs"), (nodes, "--nodes")):
            if given is not None:
                what = "a dataset already has subgraphs" if given is subgraphs else "a dataset has its own nodes"
                raise DataError(what, where=str(given), hint=f"{option} is only for a graph")
        if found is BUNDLE and reading.labels is not None:
            hint = "convert its source files again, with --task"
            raise DataError("a bundle has its own task", where=str(source), hint=hint)
        return read_dataset(source, id_base=reading.id_base, labels=reading.labels)
    if reading.labels is not None and subgraphs is None:
        what = "a graph without subgraphs has no labels"
        raise DataError(what, where=str(source), hint="use --task with --subgraphs")
    return read_tables(source, subgraphs, nodes=nodes, name=name, options=reading)
