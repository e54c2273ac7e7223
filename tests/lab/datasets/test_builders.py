"""Options as texts, and datasets by name."""

from pathlib import Path

import pytest

from subgnn.errors import DataError, UserError
from subgnn.lab.datasets.build import BUILDERS, build


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("min_shared_gene", "2", "hpo-metab: no option 'min_shared_gene'; accepted: .*did you mean 'min_shared_genes'"),
        ("labels", "2", "no option 'labels'"),
        ("min_shared_genes", "two", "hpo-metab: min_shared_genes is 'two'; accepted: a whole number"),
        ("fractions", "a,b", r"fractions is .*; accepted: a list of 3 numbers"),
        ("min_phenotypes", "0", "min_phenotypes is 0; accepted: a whole number from 1"),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, option: str, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build("hpo-metab", {"orphapacket": tmp_path}, options={option: text})


@pytest.mark.parametrize("name", BUILDERS)
def test_a_missing_source_says_where_it_is_published(name: str) -> None:
    needed = [key for key in BUILDERS[name].sources if key not in BUILDERS[name].optional]
    with pytest.raises(DataError, match=rf"{name}: (--)?{needed[0]} is missing: .*published at https://"):
        build(name, {})
    for source in BUILDERS[name].sources.values():
        assert source["published"].startswith("https://")
        assert source["licence"]
