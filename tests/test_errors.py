import pickle

import pytest

from subgnn.errors import DataError, MissingExtra, SubgnnError, UserError, choices, excerpt


@pytest.mark.parametrize(
    ("where", "hint", "expected"),
    [("", "", "what"), ("f", "", "f: what"), ("", "do this", "what; do this"), ("f:4", "ids", "f:4: what; ids")],
)
def test_a_message_is_one_line_and_survives_pickle(where, hint, expected):
    error = DataError("what", where=where, hint=hint)
    again = pickle.loads(pickle.dumps(error))
    assert str(error) == str(again) == expected
    assert (again.what, again.where, again.hint) == ("what", where, hint)
    assert isinstance(again, UserError)
    assert isinstance(again, SubgnnError)


def test_missing_extra_says_how_to_install():
    error = pickle.loads(pickle.dumps(MissingExtra("networkx", extra="formats", feature="this file format")))
    message = "this file format needs the package networkx; install it with: pip install 'subgnn[formats]'"
    assert (type(error), str(error)) == (MissingExtra, message)


def test_excerpts_and_choices():
    assert excerpt("a\nb\té") == r"'a\nb\t\xe9'"
    assert excerpt(b"\xff\x00") == r"'\\xff\x00'"
    assert excerpt("x" * 41) == "'" + "x" * 40 + "'..."
    assert choices("tset", ["train", "val", "test"]) == "accepted: train, val, test; did you mean 'test'?"
    assert choices("zzz", ["train", "val", "test"]) == "accepted: train, val, test"
