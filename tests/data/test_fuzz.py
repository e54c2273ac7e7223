"""Whatever a file holds, reading it works or raises DataError, and the command line ends with 0 or 2."""

import gzip
import json
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from subgnn import DataError, DataWarning, read_dataset, write_bundle
from subgnn.data.formats.bundle import verify_bundle
from tests.cli.command import call
from tests.data.samples import CARD, EDGES, FEATURES, NODES, SUBGRAPHS, WHOLE, whole_dataset, write_files

pytestmark = pytest.mark.slow

quick = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

ALPHABET = "0123456789\t\n\r -#%.,eE+nai\"'{}[]:\\\x00\x0b\x85\u00e9\u0663\u2028\ufeff\U0001f600"
NOISE = st.text(ALPHABET, max_size=4).map(str.encode) | st.binary(max_size=4)
LINES = st.text(ALPHABET, max_size=80).map(str.encode)


@st.composite
def damaged(draw, content):
    """A good file with some of its bytes replaced, some inserted, perhaps its end cut off."""
    data = bytearray(content)
    for _ in range(draw(st.integers(0, 3))):
        begin = draw(st.integers(0, len(data)))
        data[begin : begin + draw(st.integers(0, 4))] = draw(NOISE)
    if draw(st.integers(0, 3)) == 0:
        del data[draw(st.integers(0, len(data))) :]
    return bytes(data)


def variants(content):
    good = content if isinstance(content, bytes) else content.encode()
    return damaged(good) | LINES | st.binary(max_size=200)


def read(path):
    """Read a dataset; DataError is the one exception there may be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            return read_dataset(path)
        except DataError:
            return None


def assert_ends_well(path):
    """Both verbs agree with the reader."""
    expected = 2 if read(path) is None else 0
    for verb in ("describe", "check"):
        called = call("data", verb, path, "--json")
        assert called.code == expected, called.err
        assert expected == 0 or called.error


def asks_for_much(content):
    """A size that a card declares is taken at its word, so that a large one costs its memory."""
    try:
        size = json.loads(content)["num_nodes"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    return isinstance(size, int) and size > 10**6


FILES = {
    "edge_list.txt": EDGES.replace("\n", " 0.5\n"),
    "subgraphs.tsv": SUBGRAPHS,
    "subgraph_names.tsv": "a\nb\nc\nd\ne\nf\n",
    "nodes.tsv": NODES,
    "features.npy": FEATURES,
    "dataset.json": CARD.replace("}", ', "num_nodes": 5, "id_base": 0, "task": "binary", "directed": false}'),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_folder(name):
    @quick
    @given(variants(FILES[name]))
    def run(content):
        assume(name != "dataset.json" or not asks_for_much(content))
        with tempfile.TemporaryDirectory() as place:
            assert_ends_well(write_files(Path(place), {**WHOLE, name: content}))

    run()


@pytest.mark.parametrize("name", ["edge_list.txt", "subgraphs.tsv"])
def test_a_file_without_names_beside_it(name):
    @quick
    @given(variants(FILES[name]))
    def run(content):
        with tempfile.TemporaryDirectory() as place:
            files = {"edge_list.txt": EDGES, "subgraphs.tsv": SUBGRAPHS, name: content}
            assert_ends_well(write_files(Path(place), files))

    run()


@pytest.mark.parametrize("name", ["edge_list.txt", "subgraphs.tsv", "nodes.tsv"])
def test_a_gzipped_file(name):
    good = FILES[name].encode()

    @quick
    @given(damaged(gzip.compress(good)) | variants(good).map(gzip.compress))
    def run(content):
        with tempfile.TemporaryDirectory() as place:
            assert_ends_well(write_files(Path(place), {**WHOLE, name: None, f"{name}.gz": content}))

    run()


@quick
@given(variants(SUBGRAPHS))
def test_a_file_of_subgraphs_alone(content):
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "subgraphs.tsv"
        path.write_bytes(content)
        assert_ends_well(path)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "x.subgnn"
    write_bundle(whole_dataset(), path)
    return path.read_bytes()


def test_a_bundle(bundle):
    """``check`` alone: what it passes, the other verbs may trust."""

    @settings(quick, max_examples=150)
    @given(damaged(bundle) | st.binary(max_size=200))
    def run(content):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "x.subgnn"
            path.write_bytes(content)
            called = call("data", "check", path)
            assert called.code in (0, 2), called.err
            if read(path) is not None:
                try:
                    verify_bundle(path)
                except DataError:
                    assert called.code == 2
            else:
                assert called.code == 2

    run()


def test_the_header_of_a_bundle(bundle):
    length = int.from_bytes(bundle[:8], "little")

    @settings(quick, max_examples=150)
    @given(damaged(bundle[8 : 8 + length]))
    def run(header):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "x.subgnn"
            path.write_bytes(len(header).to_bytes(8, "little") + header + bundle[8 + length :])
            assert call("data", "check", path).code in (0, 2)

    run()


TABLES = {
    "x.csv": 'u,v,w\na,b,1\n"b",c,2\nd,a,0.5\n',
    "x.tsv": "u\tv\tw\na\tb\t1\nb\tc\t2\nd\ta\t0.5\n",
    "x.gml": 'graph [\n  node [ id 0 label "a" ]\n  node [ id 1 label "b" ]\n  edge [ source 0 target 1 ]\n]\n',
    "x.graphml": '<graphml><graph edgedefault="undirected"><node id="a"/><node id="b"/>'
    '<edge source="a" target="b"/></graph></graphml>',
    "x.json": '{"directed": false, "multigraph": false, "graph": {}, "nodes": [{"id": "a"}, {"id": "b"}], '
    '"edges": [{"source": "a", "target": "b"}]}',
    "x.mtx": "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1.0\n2 3 0.5\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_files_to_convert(name):
    """A NUL byte or an unfinished last line of a matrix is tried in a process of its own, beside the other files."""
    options = ("--weight", "w") if name in ("x.csv", "x.tsv") else ()

    @quick
    @given(variants(TABLES[name]))
    def run(content):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / name
            path.write_bytes(content if name != "x.mtx" else content.replace(b"\0", b"") + b"\n")
            called = call("data", "convert", path, *options, "--out", Path(place) / "out")
            assert called.code in (0, 2), called.err
            assert (Path(place) / "out").exists() == (called.code == 0)
            assert len(list(Path(place).iterdir())) == 2 - (called.code == 2)

    run()


MEMBERS = "subgraph,node,label,split\ns,a,x,train\nt,b,y,val\nu,c,x,test\n"


@quick
@given(variants(MEMBERS))
def test_memberships(content):
    with tempfile.TemporaryDirectory() as place:
        write_files(Path(place), {"e.csv": TABLES["x.csv"], "m.csv": content})
        arguments = (Path(place) / "e.csv", "--subgraphs", Path(place) / "m.csv", "--out", Path(place) / "out")
        called = call("data", "convert", *arguments)
        assert called.code in (0, 2), called.err
        assert (Path(place) / "out").exists() == (called.code == 0)
