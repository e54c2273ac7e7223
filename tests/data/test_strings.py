import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn import DataError, NodeNames
from subgnn.data.strings import Strings, find_node, split_names


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=8))
def test_strings_come_back(texts):
    strings = Strings.of(texts)
    assert list(strings) == texts
    assert [strings[i] for i in range(len(texts))] == texts
    assert len(strings) == len(texts)


@pytest.fixture
def names():
    symbols, entrez = ["TP53", "HLA-A", "A", "HLA", "HLA-A-2", "x y"], ["7157", "3105", "1", "0", "", "5"]
    columns = {"symbol": symbols, "entrez": entrez, "alias": ["p53", "same", "same", "", "TP53", "x y"]}
    return NodeNames({title: Strings.of(column) for title, column in columns.items()})


def test_names_are_shown_by_the_primary_column(names):
    assert (len(names), names[1], names.primary_column) == (6, "HLA-A", "symbol")
    other = NodeNames(names.columns, primary="alias")
    assert other[0] == "p53"
    assert other[3] == "#3"  # a node without a name is called by its row
    shown = NodeNames(names.columns, primary="entrez", shown="symbol")
    assert (shown[0], shown.find("7157"), shown.find("HLA")) == ("TP53", 0, 3)


def test_find(names):
    assert names.find("p53") == 0
    assert names.find("HLA") == 3
    assert names.find("nobody") is None
    assert names.find("") is None


def test_what_two_nodes_share_is_ambiguous_unless_it_is_the_name_of_one(names):
    assert names.find("same") == -1
    assert names.shared("same") == [1, 2]
    assert names.find("TP53") == 0  # the symbol of one node and the alias of another
    assert NodeNames.of(["a", "b", "a"]).find("a") == -1
    assert NodeNames.of(["a", "b", "a"]).num_shared == 1


def test_what_is_written_means_the_node():
    names = NodeNames({"name": Strings.of(["5", "a", "a", "", "#1"]), "alias": Strings.of(["", "", "5", "q", ""])})
    written = [names.written(node) for node in range(5)]
    assert [find_node(text, 5, names) for text in written] == list(range(5))
    assert written[0] == "5"


@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        ("p53", ["p53"]),
        ("p53-3105", ["p53", "3105"]),
        ("HLA-p53-A", ["HLA", "p53", "A"]),
        ("A-HLA", ["A", "HLA"]),
        ("x y-#2", ["x y", "#2"]),
        ("HLA-B", ["HLA", "B"]),
    ],
)
def test_split_names(names, joined, expected):
    assert split_names(joined, lambda text: find_node(text, 6, names) is not None, names.most_dashes) == expected


@pytest.mark.parametrize("joined", ["p53--A", "-A", "A-", "-", "A- -A"])
def test_a_dash_without_a_node_on_both_sides_is_refused(names, joined):
    for most_dashes in (0, names.most_dashes):
        with pytest.raises(DataError, match=r"a '-' without a node on both sides in '.*'; join nodes with a single"):
            split_names(joined, lambda text: find_node(text, 6, names) is not None, most_dashes)


@pytest.mark.parametrize("joined", ["HLA-A", "p53-HLA-A", "HLA-A-p53", "A-HLA-A-A"])
def test_a_list_that_can_be_read_in_two_ways_is_refused(names, joined):
    with pytest.raises(DataError, match=r"can be read in two ways: 'HLA-A', or 'HLA' and 'A'; write row numbers"):
        split_names(joined, lambda text: find_node(text, 6, names) is not None, names.most_dashes)
