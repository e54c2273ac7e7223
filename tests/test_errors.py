import pytest

from subgnn.errors import DataError, MissingExtra, SubgnnError, UserError, choices, excerpt


def test_message_has_where_what_and_hint():
    error = DataError("node 9 is not in the graph", where="subgraphs.tsv:4", hint="ids run 0..8")
    assert str(error) == "subgraphs.tsv:4: node 9 is not in the graph; ids run 0..8"
    assert (error.where, error.what, error.hint) == ("subgraphs.tsv:4", "node 9 is not in the graph", "ids run 0..8")


@pytest.mark.parametrize(
    ("where", "hint", "expected"), [("", "", "what"), ("f", "", "f: what"), ("", "do this", "what; do this")]
)
def test_message_without_parts(where, hint, expected):
    assert str(UserError("what", where=where, hint=hint)) == expected


def test_users_errors_are_one_family():
    assert issubclass(DataError, UserError)
    assert issubclass(MissingExtra, UserError)
    assert issubclass(UserError, SubgnnError)


def test_missing_extra_says_how_to_install():
    assert str(MissingExtra("networkx", extra="networkx", feature="this file format")) == (
        "this file format needs the package networkx; install it with: pip install 'subgnn[networkx]'"
    )


def test_excerpt_is_ascii_on_one_line():
    assert excerpt("a\nb\té") == r"'a\nb\t\xe9'"
    assert excerpt(b"\xff\x00") == r"'\\xff\x00'"


def test_excerpt_cuts_long_values():
    assert excerpt("x" * 40) == "'" + "x" * 40 + "'"
    assert excerpt("x" * 41) == "'" + "x" * 40 + "'..."


def test_choices_lists_all_and_names_the_nearest():
    assert choices("tset", ["train", "val", "test"]) == "accepted: train, val, test; did you mean 'test'?"
    assert choices("zzz", ["train", "val", "test"]) == "accepted: train, val, test"
