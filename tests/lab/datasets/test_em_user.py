"""EM-USER from workout records."""

from __future__ import annotations

import gzip
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn.data.describe import check
from subgnn.errors import DataError
from subgnn.lab.datasets.build import BuiltDataset, build
from subgnn.lab.datasets.em_user import EmUserSettings, JoinSettings, Workout, join_workouts, read_workouts
from tests.lab.datasets.samples import fitness_records, workout, write_records


def built(path: Path, *, seed: int = 0, **options: Any) -> BuiltDataset:
    return build("em-user", {"records": path}, options=options, seed=seed)


@pytest.mark.parametrize("style", ["json", "dict", "gzip"])
def test_records_in_every_style(tmp_path: Path, style: str) -> None:
    records = [workout(7, 1), workout(8, 2, gender="unknown"), workout(9, 3, latitude=None, longitude=None)]
    path = write_records(tmp_path / "records.json", records, style="dict" if style == "dict" else "json")
    if style == "gzip":
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_workouts(path)) == [
        Workout(1, "7", "female", "7001", "bike", (60.173, 24.749)),
        Workout(2, "8", "unknown", "8002", "bike", (60.173, 24.849)),
        Workout(3, "9", "female", "9003", "bike", None),
    ]


def test_a_dict_with_quotes_and_none_is_read_as_a_literal(tmp_path: Path) -> None:
    record = {**workout(7, 1), "sport": 'skate "free" style', "note": "a user's", "weather": None}
    path = write_records(tmp_path / "records.json", [record], style="dict")
    assert [w.sport for w in read_workouts(path)] == ['skate "free" style']


def joined(histories: list[list[int]], size: int, **chosen: Any) -> set[tuple[int, int]]:
    rows = [np.array(sorted(set(h)), np.int64) for h in histories]
    tails, heads, thinned = join_workouts(rows, size, JoinSettings(**chosen), np.random.default_rng(0))
    assert thinned >= 0
    return set(zip(tails.tolist(), heads.tolist(), strict=True))


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=8),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_edges_and_thinning_agree_with_counting(histories: list[list[int]], least: int, clique: int) -> None:
    sets = [set(history) for history in histories]
    together = {(a, b): sum({a, b} <= done for done in sets) for a, b in combinations(range(10), 2)}
    edges = {pair for pair, count in together.items() if count >= least}
    cliques = sets if least == 1 else [a & b for a, b in combinations(sets, 2)]
    often = {n for n in range(10) if sum(n in done for done in sets) >= least}
    crowded = {(a, b) for a, b in edges if any(len(c & often) > clique and {a, b} <= c for c in cliques)}
    assert joined(histories, 10, min_users=least, max_clique=clique, keep=1.0) == edges
    assert joined(histories, 10, min_users=least, max_clique=clique, keep=0.0) == edges - crowded


def test_a_build_is_a_dataset_that_reads_back(tmp_path: Path) -> None:
    path = write_records(tmp_path / "records.json", fitness_records())
    built(path).write(tmp_path / "out")
    problems, dataset = check(tmp_path / "out")
    assert dataset is not None
    assert not problems.errors
    # Users 0..19 do the five workouts from user % 4 on: eight places, every two of one history shared.
    assert dataset.graph.num_nodes == 8
    assert dataset.graph.num_edges == len({p for s in range(4) for p in combinations(range(s, s + 5), 2)})
    assert dataset.subgraphs.label_counts() == {"female": 10, "male": 10}
    assert dataset.card["counts"]["splits"] == {"train": 14, "val": 3, "test": 3}
    names = dataset.graph.names
    assert names is not None
    assert names[0] == "bike 60.17 24.65"
    assert sorted(dataset.subgraphs.names or ()) == sorted(str(user) for user in range(20))
    assert dataset.card["sources"][0]["what"].startswith("Endomondo")


def test_unknown_genders_and_short_histories_are_dropped_and_counted(tmp_path: Path) -> None:
    records = fitness_records() + [workout(30, n, gender="unknown") for n in range(5)] + [workout(31, 0)]
    records += [workout(32, n, gender="unknown" if n < 2 else "male") for n in range(4)]
    records.append(records[0])
    found = built(write_records(tmp_path / "r", records)).dataset
    assert "32" in list(found.subgraphs.names or ())
    assert found.card["dropped"] == {
        "users of unknown gender": 1,
        "users with few workouts": 1,
        "repeated records": 1,
        "edges thinned": 0,
    }


def test_places_are_rounded_and_sports_kept_apart(tmp_path: Path) -> None:
    records = fitness_records()
    records += [workout(0, 90, latitude=[-0.001], longitude=[0.004]), workout(0, 91, latitude=[0.0], longitude=[0.0])]
    records += [
        workout(0, 92, sport="run", latitude=[0.0], longitude=[0.0]),
        workout(0, 93, sport="gym", latitude=None),
    ]
    records[-1].pop("longitude")
    graph = built(write_records(tmp_path / "r", records)).dataset.graph
    names = graph.names
    assert names is not None
    extra = {name for name in names.primary if " 60.17 " not in name}
    assert extra == {"bike 0.00 0.00", "run 0.00 0.00", "gym"}
    assert built(tmp_path / "r", decimals=3).dataset.graph.num_nodes == graph.num_nodes + 1


def test_two_genders_of_one_user_are_refused(tmp_path: Path) -> None:
    records = [workout(4, 1, gender="unknown"), workout(4, 2), workout(4, 3, gender="female")]
    with pytest.raises(DataError, match="r: record 3: user 4 is female, but male in record 2"):
        built(write_records(tmp_path / "r", records))


def test_one_gender_alone_or_none_is_refused(tmp_path: Path) -> None:
    one = [r for r in fitness_records() if r["gender"] == "male"]
    with pytest.raises(DataError, match="only 10 users are left, with 1 genders; both are needed"):
        built(write_records(tmp_path / "r", one))
    with pytest.raises(DataError, match="no workouts"):
        built(write_records(tmp_path / "r", []))


def test_the_seed_decides(tmp_path: Path) -> None:
    path = write_records(tmp_path / "r", fitness_records())
    a, b, c = (built(path, seed=s, max_clique=2, keep=0.5).dataset.graph.content_hash for s in (1, 1, 2))
    assert a == b != c


@pytest.mark.parametrize("wrong", [{"decimals": 9}, {"min_workouts": 0}, {"fractions": (1.0, 0.0, 0.0)}])
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"accepted|sum to 1"):
        EmUserSettings(**wrong)
    with pytest.raises(DataError, match="keep: 2; 0 to 1 is accepted"):
        JoinSettings(keep=2)
