"""subgnn recipes lists every recipe, with what it needs and costs."""

from __future__ import annotations

from subgnn.config.recipes import recipe_names
from tests.cli.command import call


def test_every_recipe_is_listed_with_its_purpose_and_cost():
    found = {one["name"]: one for one in call("recipes", "--json").json["recipes"]}
    assert set(found) == set(recipe_names())
    for one in found.values():
        assert 10 < len(one["purpose"]) < 120, one["name"]
        assert one["note"].startswith(one["purpose"])
        assert one["cost"]
    assert found["auto"]["cost"] == "up to 5 minutes"
    assert (found["bag"]["needs"], found["bag"]["cost"]) == ([], "solved, 18 fits")
    assert found["bag-1hop"]["needs"] == ["edges"]
    assert found["neighborhood"]["needs"] == ["gin embeddings"]
    assert found["s2v-n"]["needs"] == ["edges", "extra baselines", "known subgraphs"]
    assert found["surroundings"]["cost"] == "trained, 5 x 20 epochs"
    assert found["alsentzer2020_ppi_bp"]["published"]["micro_f1"] == 0.599


def test_the_table_begins_with_auto_and_ends_with_the_next_command():
    called = call("recipes")
    lines = [line.split() for line in called.out.splitlines() if line.strip()]
    assert lines[3][0] == "auto"
    assert called.out.rstrip().endswith("next: subgnn train DIR --recipe NAME --out RUN")
