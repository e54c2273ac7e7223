import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn import DataError, NodeNames
from subgnn.data.strings import Strings, is_id


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=8))
def test_strings_come_back(texts):
    strings = Strings.of(texts)
    assert list(strings) == texts
    assert [strings[i] for i in range(len(texts))] == texts
    assert len(strings) == len(texts)


def test_strings_take():
    assert list(Strings.of(["a", "", "ßx"]).take(np.array([2, 0, 1, 2]))) == ["ßx", "a", "", "ßx"]


def test_strings_are_utf8_bytes_end_to_end():
    strings = Strings.of(["é", "ab"])
    assert strings.rows.values.tobytes() == "éab".encode()
    assert strings.rows.offsets.tolist() == [0, 2, 4]


@pytest.fixture
def names():
    return NodeNames(
        {
            "symbol": Strings.of(["TP53", "HLA-A", "A", "HLA", "HLA-A-2", "x y"]),
            "entrez": Strings.of(["7157", "3105", "1", "0", "", "5"]),
            "alias": Strings.of(["p53", "same", "same", "", "TP53", "x y"]),
        },
    )


def test_names_are_shown_by_the_primary_column(names):
    assert (len(names), names[1], names.primary_column) == (6, "HLA-A", "symbol")
    other = NodeNames(names.columns, primary="alias")
    assert other[0] == "p53"
    assert other[3] == "3"  # a node without a name is called by its id


def test_find(names):
    assert names.find("p53") == 0
    assert names.find("HLA") == 3
    assert names.find("nobody") is None
    assert names.find("") is None


def test_a_name_that_two_nodes_share_is_ambiguous(names):
    assert names.find("same") == -1
    assert names.find("TP53") == -1  # the symbol of one node and the alias of another


def test_one_node_may_repeat_its_name(names):
    assert names.find("x y") == 5


def test_digits_are_never_looked_up(names):
    assert names.find("7157") is None
    assert names.resolve("1-0") == [1, 0]


@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        ("p53", [0]),
        ("p53-3", [0, 3]),
        ("HLA-A", [1]),
        ("HLA-p53-A", [3, 0, 2]),
        ("A-HLA", [2, 3]),
        ("HLA-A-p53", [1, 0]),
        ("HLA-A-2", [4]),  # the longest name wins over HLA-A and id 2
        ("HLA-A-HLA-A-2-1", [1, 4, 1]),
        ("HLA-B", [3, "B"]),
        ("same-p53", ["same", 0]),
        ("p53--1", [0, "", 1]),
        ("", [""]),
        ("nobody-2", ["nobody", 2]),
        ("99", [99]),
        ("1" * 19, ["1" * 19]),
    ],
)
def test_resolve(names, joined, expected):
    assert names.resolve(joined) == expected


def test_names_of_one_column():
    names = NodeNames.of(["a", "b"])
    assert list(names.columns) == ["name"]
    assert names.resolve("b-a") == [1, 0]


def test_bad_names():
    with pytest.raises(DataError, match="NodeNames: node names need at least one column"):
        NodeNames({})
    with pytest.raises(DataError, match=r"NodeNames: columns of unequal length \[1, 2\]"):
        NodeNames({"a": Strings.of("x"), "b": Strings.of("yz")})


@pytest.mark.parametrize("text", ["0", "007", "9" * 18])
def test_ids(text):
    assert is_id(text)


@pytest.mark.parametrize("text", ["9" * 19, "", "-1", "1.0", "1 ", "٣", "²", "1_0", "a"])
def test_no_ids(text):
    assert not is_id(text)
