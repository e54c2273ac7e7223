"""The recipes alsentzer2020_* are the settings that the paper's authors published, value for value."""

import csv

import pytest

from subgnn.config.recipes import recipe_names
from subgnn.config.settings import Recipe
from subgnn.models.recipes import find_recipe

# The authors' own names and values; a row for each dataset and set of channels.
COLUMNS = """
dataset channels max_epochs node_embed_size batch_size learning_rate auto_lr_find grad_clip n_layers
neigh_sample_border_size n_anchor_patches_N_in n_anchor_patches_N_out n_anchor_patches_pos_in
n_anchor_patches_pos_out n_anchor_patches_structure sample_walk_len n_triangular_walks random_walk_len rw_beta
lstm_n_layers lstm_dropout linear_hidden_dim_1 linear_hidden_dim_2 lin_dropout cc_aggregator trainable_cc
batch_norm
"""
PUBLISHED = """\
component N 200 64 128 0.0003543 True 3.24e-06 1 1 25 31 69 83 21 24 12 18 0.7538 2 0.1871 64 64 0.2265 max True False
component P 200 64 64 0.0004149 False 0.43 1 2 17 60 72 80 22 23 13 18 0.8409 1 0.3948 64 32 0.3921 max False False
component S 200 64 64 0.0001145 True 0.06542 1 1 10 32 55 87 16 50 5 10 0.65 1 0.359 64 32 0.369 max False False
component NPS 200 64 64 0.0009203 False 0.4585 3 1 14 40 53 90 31 50 5 10 0.65 1 0.3427 64 32 0.3749 max True True
coreness N 200 64 128 0.0004578 False 0.4347 2 1 22 32 48 55 18 24 5 20 0.2252 2 0.3681 77 48 0.04623 sum False False
coreness P 200 64 64 0.0001653 True 0.1944 5 1 20 55 55 122 17 22 10 20 0.5663 2 0.1343 51 24 0.05864 sum False False
coreness S 200 64 64 0.0009062 False 0.2794 5 1 22 59 73 132 37 50 5 10 0.65 2 0.09702 64 32 0.2859 max False False
coreness NPS 200 64 64 0.0001844 True 0.02257 2 1 21 40 43 168 37 50 5 10 0.65 1 0.382 64 32 0.2997 max True True
cutratio N 200 64 128 0.0004376 True 0.4792 1 2 15 57 60 150 18 20 11 19 0.5196 1 0.2473 60 25 0.02281 max False False
cutratio P 200 64 128 0.0002113 False 0.003258 5 2 15 50 31 143 30 20 10 20 0.5 1 0 18 22 0.2396 max True False
cutratio S 200 64 128 0.0005956 True 0.07471 4 1 20 68 55 187 28 50 5 10 0.65 2 0.03037 64 32 0.292 max False False
cutratio NPS 200 64 128 0.0003206 False 0.05304 4 2 10 41 30 106 35 50 5 10 0.65 2 0.3804 64 64 0.01271 max True False
density N 200 32 64 0.0002592 True 0.4827 5 2 20 37 53 99 28 20 6 20 0.3129 2 0.003826 64 32 0.09405 sum False False
density P 200 32 64 0.0009427 False 0.1801 4 2 12 47 25 136 22 23 9 22 0.2415 1 0.1714 64 64 0.3245 sum False False
density S 200 32 64 0.0002827 False 0.2671 4 2 11 26 58 101 15 50 5 10 0.65 1 0.206 64 32 0.3318 max False False
density NPS 150 32 64 0.0002952 True 0.193 1 2 10 43 57 183 42 50 5 10 0.65 1 0.3407 64 64 0.2523 max False False
em_user N 200 128 32 0.0007225 False 0.1374 1 2 16 32 48 77 35 22 10 23 0.1816 1 0.016 64 32 0.003487 sum True False
hpo_metab S 200 128 64 0.0003658 True 0.2676 4 2 13 34 56 90 18 50 5 10 0.65 2 0.0991 64 32 0.211 sum False False
hpo_neuro S 200 128 128 0.0009505 False 0.1637 5 2 23 46 67 186 43 50 5 10 0.65 1 0.08666 64 64 0.2143 sum False False
ppi_bp S 200 64 32 0.0001512 False 0.2058 4 1 12 58 66 178 25 50 5 10 0.65 2 0.2353 64 64 0.3681 sum False False
"""
HEADLINE = {"density": "S", "cut_ratio": "S", "coreness": "NPS", "component": "P"}
KINDS = {"N": "neighborhood", "P": "position", "S": "structure"}
SETTINGS = {
    "max_epochs": "training.epochs",
    "node_embed_size": "embeddings.dim",
    "batch_size": "training.batch_size",
    "learning_rate": "training.lr",
    "grad_clip": "training.clip",
    "n_layers": "model.layers",
    "neigh_sample_border_size": "prepare.hops",
    "sample_walk_len": "prepare.patch_length",
    "n_triangular_walks": "prepare.walks",
    "random_walk_len": "prepare.walk_length",
    "rw_beta": "prepare.beta",
    "lstm_n_layers": "model.lstm_layers",
    "lstm_dropout": "model.lstm_dropout",
    "lin_dropout": "model.dropout",
    "cc_aggregator": "model.component_init",
    "trainable_cc": "model.trainable_components",
}


def rows() -> list[dict[str, str]]:
    found = list(csv.DictReader(PUBLISHED.splitlines(), COLUMNS.split(), delimiter=" "))
    for row in found:
        row["dataset"] = row["dataset"].replace("cutratio", "cut_ratio")
    return found


def names(row: dict[str, str]) -> list[str]:
    """The recipe of a dataset is that of its headline row; on synthetic ones each row has a name of its own, too."""
    whole, channels = f"alsentzer2020_{row['dataset']}", row["channels"].replace("NPS", "all")
    if row["dataset"] not in HEADLINE:
        return [whole]
    return [f"{whole}_{channels}", *([whole] if HEADLINE[row["dataset"]] == row["channels"] else [])]


def named_rows() -> dict[str, dict[str, str]]:
    return {name: row for row in rows() for name in names(row)}


def value(text: str) -> object:
    if text in ("True", "False"):
        return text == "True"
    return text if text.isalpha() else float(text)


def num_anchors(row: dict[str, str], kind: str, side: str) -> int:
    columns = {
        ("neighborhood", "internal"): "N_in",
        ("neighborhood", "border"): "N_out",
        ("position", "internal"): "pos_in",
        ("position", "border"): "pos_out",
    }
    return int(row["n_anchor_patches_" + columns.get((kind, side), "structure")])


def test_there_is_a_recipe_for_every_published_row():
    assert len(rows()) == 20
    assert {name for name in recipe_names() if name.startswith("alsentzer2020_")} == set(named_rows())


@pytest.mark.parametrize("name", named_rows())
def test_a_recipe_has_the_published_settings(name):
    row, recipe = named_rows()[name], find_recipe(name)
    settings = recipe.plain()
    found = {column: settings[key.split(".")[0]][key.split(".")[1]] for column, key in SETTINGS.items()}
    assert found == {column: value(row[column]) for column in SETTINGS}
    assert recipe.model.head == (int(row["linear_hidden_dim_1"]), int(row["linear_hidden_dim_2"]))
    assert recipe.model.hidden_norm == ("batch" if row["batch_norm"] == "True" else "none")
    wanted = [(KINDS[letter], side) for letter in "PNS" if letter in row["channels"] for side in ("internal", "border")]
    assert [(c.kind, c.side, c.num_anchors) for c in recipe.channels] == [
        (kind, side, num_anchors(row, kind, side)) for kind, side in wanted
    ]
    dropped = "auto_lr_find"  # by the pytorch-lightning 0.7.1 that the authors pinned: it has no such option
    read = {*SETTINGS, "linear_hidden_dim_1", "linear_hidden_dim_2", "batch_norm", "dataset", "channels", dropped}
    assert {column for column in row if not column.startswith("n_anchor_patches_")} == read


@pytest.mark.parametrize("name", named_rows())
def test_all_else_in_a_recipe_is_at_its_default(name):
    """But for the embeddings: those of an untrained GIN, fine-tuned, as in every published run."""
    recipe, plain = find_recipe(name), Recipe()
    assert (recipe.method, recipe.embeddings.source, recipe.embeddings.trainable) == ("subgnn", "gin-untrained", True)
    published = {*SETTINGS.values(), "model.head", "model.hidden_norm", "embeddings.source"}
    for section in ("prepare", "embeddings", "pretrain", "model", "training"):
        ours, defaults = recipe.plain()[section], plain.plain()[section]
        assert {k for k in ours if ours[k] != defaults[k] and f"{section}.{k}" not in published} == set()
