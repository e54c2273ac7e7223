"""Every kind of file that the package reads: a good one, how it is read, and how it is damaged."""

import gzip
import hashlib
import io
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subgnn import DataWarning, Ragged, read_dataset, write_bundle, write_folder
from subgnn.api.train_recipe import train
from subgnn.embeddings.sources import read_vectors, write_vectors
from subgnn.errors import UserError
from subgnn.inference.answers import Files
from subgnn.inference.open import export_run, open_run
from subgnn.inference.options import PredictOptions
from subgnn.inference.predictions import write_predictions
from subgnn.lab.datasets.builder import read_obo
from subgnn.lab.datasets.ppi_bp import read_annotations, read_gene_symbols, read_interactome
from subgnn.lab.datasets.rare_diseases import read_hpo, read_orphapackets
from subgnn.lab.suites.spec import find_suite
from subgnn.lab.tuning.tune import find_space
from subgnn.models.recipes import find_recipe
from subgnn.prepare.measure import encode, read_prepared
from subgnn.reports.run_page import write_report
from subgnn.storage.arrays import Format, load_state, save_state, write_parts
from subgnn.training.run import load_progress
from subgnn.training.run_dir import CHECKPOINT, LAST, read_run_recipe
from tests.cli.command import call
from tests.data import samples
from tests.fuzz import mutations, requests
from tests.fuzz.mutations import Kind
from tests.lab.datasets import samples as real_samples
from tests.lab.datasets.packed import tar_of, zip_of
from tests.models.subgnn.examples import prepare_example
from tests.pages import ROOT
from tests.training import examples

ROWS = Ragged.from_rows([[0, 1, 2, 10, 11, 20], [3, 9]])


def command(*arguments: object) -> str:
    found = call(*arguments)
    if found.code == 2:
        if len(found.err.strip().splitlines()) != 1:
            raise AssertionError(f"not one line: {found.err}")
        raise UserError(found.err.strip())
    if found.code:
        raise AssertionError(found.err)
    return found.out


def describe(path: Path) -> str:
    return command("data", "describe", path if path.suffix == ".subgnn" else path.parent, "--json")


def convert(path: Path, *options: object) -> str:
    out = path.parent / "out"
    shutil.rmtree(out, ignore_errors=True)
    weight = ("--weight", "w") if path.suffix in (".csv", ".tsv", ".parquet") and not options else ()
    return command("data", "convert", path, *weight, *options, "--out", out, "--json")


def attributes(path: Path) -> str:
    return convert(path.parent / "e.csv", "--nodes", path)


def memberships(path: Path) -> str:
    return convert(path.parent / "e.csv", "--subgraphs", path)


def file(name: str, content: str | bytes, **others: Any) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        return samples.write_files(folder, {**others, name: content}) / name

    return make


OF_EDGES = "type\ttime\n" + "".join(f"{'ab'[i % 2]}\t2024-01-{i + 10}\n" for i in range(samples.EDGES.count("\n")))


def of_folder(name: str, content: str | bytes | None = None) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        whole = {**samples.WHOLE, "subgraph_names.tsv": "a\nb\nc\nd\ne\nf\n"}
        if name.endswith(".gz"):
            text = whole.pop(name.removesuffix(".gz"))
            whole[name] = gzip.compress(str(text).encode(), mtime=0)
        elif content is not None:
            whole[name] = content
        return samples.write_files(folder, whole) / name

    return make


def make_bundle(folder: Path) -> Path:
    path = folder / "x.subgnn"
    write_bundle(examples.dataset(), path)
    return path


def read_bundle(path: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        data = read_dataset(path)
    describe(path)
    parts = (data.graph.offsets, data.graph.neighbors, data.subgraphs.nodes.values, data.subgraphs.nodes.offsets)
    targets = np.asarray(data.subgraphs.targets)
    digest = hashlib.sha256(repr((data.name, data.subgraphs.classes, data.subgraphs.task)).encode())
    for part in (*parts, targets):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


@cache
def trained() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-run-"))
    data, recipe = examples.dataset(), examples.recipe(1, topology=True, trainable_components=True)
    write_folder(data, folder / "data")
    options: dict[str, Any] = {"device": "cpu", "cache": False, "report": False}
    train(data, recipe, folder / "run", source=str(folder / "data"), **options)
    examples.train_until(0, data, examples.recipe(2), folder / "cut", **options)
    export_run(folder / "run", folder / "whole.safetensors", with_graph=True)
    export_run(folder / "run", folder / "bare.safetensors")
    return folder


def of_run(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        shutil.copytree(trained() / "run", folder, dirs_exist_ok=True)
        return folder / name

    return make


def copy_of(name: str) -> Callable[[Path], Path]:
    return lambda folder: Path(shutil.copy(trained() / name, folder))


def answer(path: Path) -> bytes:
    return open_run(path.parent, trained() / "data").predictor.outputs(ROWS).tobytes()


def answer_of_export(path: Path) -> bytes:
    predictor = open_run(path, None if path.name == "whole.safetensors" else trained() / "data").predictor
    return predictor.outputs(ROWS).tobytes()


def resume_settings(path: Path) -> str:
    return repr(read_run_recipe(path.parent))


def report(path: Path) -> str:
    return write_report(path.parent, path.parent / "page.html", data=trained() / "data", overwrite=True).name


def tensors(content: Any) -> str:
    torch.set_printoptions(profile="full")
    return repr(content)


PACKETS = {f"{code}.json": json.dumps(real_samples.packet(code)).encode() for code in "12"}
STATE = Format(name="state", noun="state", make="a test writes one", again="write it again")


def make_state(folder: Path) -> Path:
    save_state(
        {"owner": {"dim": 4}, "encoder": {"w": torch.arange(12.0).reshape(3, 4)}, "progress": {"epoch": 1}},
        folder / "s.safetensors",
        STATE,
    )
    return folder / "s.safetensors"


@cache
def prepared() -> Any:
    return prepare_example(0, layers=1)[1]


def make_prepared(folder: Path) -> Path:
    write_parts(folder / "x.prepared", encode(prepared(), "key"))
    return folder / "x.prepared"


def read_prepared_file(path: Path) -> bytes:
    found = read_prepared(path, prepared().frame, key="key", graph_hash=prepared().graph_hash)
    parts = [found.components.nodes.values, found.components.nodes.offsets]
    parts += [one.similarity for layer in found.inputs for one in layer]
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def vectors() -> Any:
    return np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)


def make_vectors(folder: Path) -> Path:
    path = folder / "v.safetensors"
    write_vectors(path, vectors(), {"source": "none"}, graph_hash=examples.dataset().graph.content_hash)
    return path


def make_text_vectors(folder: Path) -> Path:
    rows = [f"{i} {' '.join(map(str, row))}\n" for i, row in enumerate(vectors())]
    (folder / "v.vec").write_text("24 3\n" + "".join(rows))
    return folder / "v.vec"


def embeddings(path: Path) -> bytes:
    return read_vectors(path, examples.dataset().graph).tobytes()


def parquet(folder: Path) -> Path:
    import pyarrow as pa
    from pyarrow import parquet as pq

    pq.write_table(pa.table({"u": ["a", "b", "d"], "v": ["b", "c", "a"], "w": [1.0, 2.0, 0.5]}), folder / "x.parquet")
    return folder / "x.parquet"


def pyg(folder: Path) -> Path:
    from torch_geometric.data import Data

    torch.save(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3), folder / "x.pt")
    return folder / "x.pt"


def predict(path: Path) -> str:
    write_predictions(trained() / "run", Files(path, path.parent / "out.tsv", overwrite=True), PredictOptions())
    return (path.parent / "out.tsv").read_text()


def ppi(name: str) -> Callable[[Path], Path]:
    return lambda folder: real_samples.write_ppi(folder) / name


def hpo(name: str) -> Callable[[Path], Path]:
    return lambda folder: real_samples.write_hpo(folder)[0] / name


def orphapacket(folder: Path) -> Path:
    return min(real_samples.write_hpo(folder)[1].iterdir())


def packaged(name: str) -> Callable[[Path], Path]:
    return lambda folder: Path(shutil.copy(ROOT / "src" / "subgnn" / name, folder))


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


CSV = 'u,v,w\na,b,1\n"b",c,2\nd,a,0.5\n'
GRAPHML = (
    '<graphml><graph edgedefault="undirected"><node id="a"/><node id="b"/>'
    '<edge source="a" target="b"/></graph></graphml>'
)
NODES_AND_EDGES = {"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"source": "a", "target": "b"}]}
NODE_LINK = json.dumps({"directed": False, "multigraph": False, "graph": {}, **NODES_AND_EDGES})

CARD = samples.CARD.replace("}", ', "num_nodes": 5, "id_base": 0, "task": "binary", "directed": false}')
MEMBERS = "subgraph,node,label,split\ns,a,x,train\nt,b,y,val\nu,c,x,test\n"

WIDE = "subgraph,nodes,label,split\ns,a;b,x,train\nt,b;c,y,val\nu,c;a,x,test\n"
JSON_LINES = '{"source": "a", "target": "b"}\n{"source": "b", "target": 7}\n'
ATTRIBUTES = "node,length,kind\na,1.5,x\nb,2,y\nc,,x\nd,4,x\n"


KINDS: dict[str, Kind] = {
    "edge_list.txt": Kind(of_folder("edge_list.txt", samples.EDGES.replace("\n", " 0.5\n")), describe),
    "edge_attributes.tsv": Kind(of_folder("edge_attributes.tsv", OF_EDGES), describe),
    "subgraphs.tsv": Kind(of_folder("subgraphs.tsv"), describe),
    "nodes.tsv": Kind(of_folder("nodes.tsv"), describe),
    "subgraph_names.tsv": Kind(of_folder("subgraph_names.tsv"), describe),
    "dataset.json": Kind(of_folder("dataset.json", CARD), describe),
    "features.npy": Kind(of_folder("features.npy"), describe, mutations.binary),
    "edge_list.txt.gz": Kind(of_folder("edge_list.txt.gz"), describe, mutations.inside_gzip),
    "bundle": Kind(make_bundle, read_bundle, mutations.inside_header, signed=True),
    "table.csv": Kind(file("x.csv", CSV), convert),
    "table.tsv": Kind(file("x.tsv", CSV.replace(",", "\t")), convert),
    "table.parquet": Kind(parquet, convert, mutations.binary),
    "table.jsonl": Kind(file("x.jsonl", JSON_LINES), convert),
    "memberships.csv": Kind(file("m.csv", MEMBERS, **{"e.csv": CSV}), memberships),
    "wide.csv": Kind(file("m.csv", WIDE, **{"e.csv": CSV}), memberships),
    "attributes.csv": Kind(file("n.csv", ATTRIBUTES, **{"e.csv": CSV}), attributes),
    "graph.graphml": Kind(file("x.graphml", GRAPHML), convert),
    "graph.json": Kind(file("x.json", NODE_LINK), convert),
    "graph.pt": Kind(pyg, convert, mutations.inside_zip),
    "embeddings.safetensors": Kind(make_vectors, embeddings, mutations.inside_header, signed=True),
    "embeddings.npy": Kind(file("v.npy", npy(vectors())), embeddings, mutations.binary),
    "embeddings.vec": Kind(make_text_vectors, embeddings),
    "prepared": Kind(make_prepared, read_prepared_file, mutations.inside_header, signed=True),
    CHECKPOINT: Kind(of_run(CHECKPOINT), answer, mutations.inside_header, signed=True),
    LAST: Kind(copy_of(f"cut/{LAST}"), lambda p: tensors(load_progress(p)), mutations.inside_header, signed=True),
    "state": Kind(make_state, lambda p: tensors(load_state(p, STATE)), mutations.inside_header, signed=True),
    "run.json": Kind(of_run("run.json"), report),
    "recipe.json": Kind(of_run("recipe.json"), resume_settings),
    "metrics.jsonl": Kind(of_run("metrics.jsonl"), report),
    "export with graph": Kind(copy_of("whole.safetensors"), answer_of_export, mutations.inside_header, signed=True),
    "export without graph": Kind(copy_of("bare.safetensors"), answer_of_export, mutations.inside_header, signed=True),
    "recipe.toml": Kind(packaged("config/recipes/structure.toml"), lambda p: repr(find_recipe(str(p), allow=False))),
    "suite.toml": Kind(packaged("lab/suites/synthetic.toml"), lambda p: repr(find_suite(str(p)))),
    "search space.toml": Kind(packaged("lab/tuning/spaces/paper.toml"), lambda p: repr(find_space(str(p)))),
    "subgraphs to predict": Kind(file("s.tsv", "0-1-2\n3-9\tx\n5\n"), predict),
    "ontology.obo": Kind(ppi("go.obo"), lambda p: repr(read_obo(p).ancestors())),
    "gene2go.tsv": Kind(ppi("gene2go.tsv"), lambda p: repr(read_annotations(p, ()))),
    "interactome.csv": Kind(ppi("network.csv"), lambda p: repr(read_interactome(p))),
    "gene symbols.tsv": Kind(ppi("symbols.tsv"), lambda p: repr(read_gene_symbols(p))),
    "phenotype.hpoa": Kind(hpo("phenotype.hpoa"), lambda p: repr(read_hpo(p.parent))),
    "phenotype_to_genes.txt": Kind(hpo("phenotype_to_genes.txt"), lambda p: repr(read_hpo(p.parent))),
    "ORPHApacket.json": Kind(orphapacket, lambda p: repr(read_orphapackets(p.parent))),
    "ORPHApacket.zip": Kind(file("x.zip", zip_of(PACKETS)), lambda p: repr(read_orphapackets(p)), mutations.inside_zip),
    "ORPHApacket.tar.gz": Kind(
        file("x.tar.gz", tar_of(PACKETS)), lambda p: repr(read_orphapackets(p)), mutations.inside_gzip
    ),
    **{name: Kind(file("request", raw), requests.ask, requests.damage) for name, raw in requests.GOOD.items()},
}  # fmt: skip
