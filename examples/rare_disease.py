"""A rare disease, from data to an explanation: build or load, train, predict a patient, explain, draw."""

# %% [markdown]
# # A rare disease: from data to an explanation
#
# A patient is a set of phenotypes, scattered over a graph of phenotypes; the question is what kind of disease it is.
# This script trains a small model, predicts a patient it has not seen, given by names, and explains the prediction.
# It runs as a script (`python examples/rare_disease.py`), and cell by cell in editors that know `# %%`.
#
# By default it uses **made-up data** of the right form (made_up_diseases.py). For real data, build HPO-METAB once, and
# give its folder:
#
#     pip install 'subgnn[paper]'
#     subgnn data build hpo-metab --orphapacket orphapacket-json.tar.xz --out hpo_metab
#     RARE_DISEASE_DATA=hpo_metab python examples/rare_disease.py
#
# Neither is fit for decisions about people.

# %%
import os
from collections import Counter
from pathlib import Path

import numpy as np
from made_up_diseases import build_made_up

import subgnn
from subgnn.kernels.induced import induced_components

OUT = Path(os.environ.get("RARE_DISEASE_OUT", "rare_disease"))
EPOCHS = int(os.environ.get("RARE_DISEASE_EPOCHS", "30"))
GIVEN = os.environ.get("RARE_DISEASE_DATA")

# %% [markdown]
# ## The data
#
# Nodes are phenotypes. An edge joins two that share causal genes, or of which one is a kind of the other. A subgraph is
# the phenotypes of one disease, and its label the class of the disease. All forms of a disorder are in one split.

# %%
folder = Path(GIVEN) if GIVEN else build_made_up(OUT)
data = subgnn.read_dataset(folder)
graph, diseases = data.graph, data.subgraphs
seen = subgnn.describe(data)
print(f"{data.name}{'' if GIVEN else ' (MADE UP: not medical data)'}")
print(f"{seen['num_nodes']:,} phenotypes, {seen['num_edges']:,} edges")
print(f"{seen['num_subgraphs']:,} diseases: {', '.join(f'{split} {count}' for split, count in seen['splits'].items())}")
print(f"classes: {', '.join(f'{name} {count}' for name, count in seen['label_counts'].items())}")
for what, values in seen["subgraphs"].items():
    print(f"  {what} of a disease: {values['mean']:.3g} ± {values['std']:.2g}")

# %% [markdown]
# A disease may consist of several components: phenotypes that no edge joins. The model sees each of them, and its
# surroundings.
#
# ## A small model
#
# `subgnn` looks at who is in the subgraph and around it (the neighborhood channel), at its shape (structure), and at
# plain statistics of it. Thirty epochs on a CPU; the best of them on validation is selected. Test is scored once.

# %%
settings = {"training.epochs": EPOCHS, "training.lr": 0.005, "embeddings.dim": 32}
out = OUT / "run"
number = 1
while out.exists():  # a run is never written over
    number += 1
    out = OUT / f"run-{number}"
run = subgnn.train(folder, out, recipe="subgnn", settings=settings, seed=0, device="cpu")
test = diseases.indices("test")
commonest = Counter(diseases.label_text(int(i)) for i in diseases.indices("train")).most_common(1)[0][0]
guessed = np.mean([diseases.label_text(int(i)) == commonest for i in test])
print(f"test micro-F1 {run.result.test['micro_f1']:.3f} on {len(test)} diseases; always '{commonest}': {guessed:.3f}")
print(f"epoch {run.result.selected_epoch} was kept; the page of the run: {run.report}")

# %% [markdown]
# ## A new patient
#
# Three of four phenotypes of a disease that the model has never seen, and the commonest phenotype that does not belong
# to it: patients do not have all phenotypes of a disease, and they have others. The disease is a test disease that
# consists of several components, some of them of several phenotypes.

# %%
held_out = diseases.nodes.take(test)
components = induced_components(*graph.csr, held_out).counts
several = np.minimum(components, held_out.lengths - components)
disease = int(test[np.argmax(np.where(held_out.lengths <= 16, several, 0))])
own = [graph.names[node] for place, node in enumerate(diseases.nodes[disease].tolist()) if place % 4 != 3]
common = Counter(diseases.nodes.values.tolist()).most_common()
other = next(graph.names[node] for node, _ in common if node not in diseases.nodes[disease])
patient = [*own, other]
print("a patient with: " + "; ".join(patient))
print(f"of a disease of class {diseases.label_text(disease)}; '{other}' does not belong to it")

# %% [markdown]
# Names are looked up in any case, and HPO ids, too. For another patient, put other names into `patient`.

# %%
chances = run.predict([patient])[list(run.classes)].iloc[0].sort_values(ascending=False)
for name, chance in chances.items():
    print(f"{chance:6.1%}  {name}")

# %% [markdown]
# ## Why
#
# The contribution of each phenotype, component and channel to the logit of the predicted class: the output with it,
# minus the output without it. Above 0 it supports the class, below 0 it opposes it. These are differences of
# predictions: they need not add up, and they describe the model, not the disease. docs/patients.md has the definitions.

# %%
why = run.explain([patient])[0]
predicted = why.classes[why.leading]


def show(title: str, items: list[tuple[str, float]]) -> None:
    """Print the largest contributions first, of either sign."""
    if items:
        print(f"\n{title}, towards {predicted}")
    for name, push in sorted(items, key=lambda item: -abs(item[1])):
        print(f"  {push:+6.2f}  {name}")


pushes = {item.node: why.of_class(item.contributions) for item in why.by_node}
show("phenotypes", [(item.name, pushes[item.node]) for item in why.by_node])
show("components", [("; ".join(item.names), why.of_class(item.contributions)) for item in why.by_component])
show("channels", [(item.name, why.of_class(item.contributions)) for item in why.by_channel])
show("anchors", [(f"{a.channel}: {'; '.join(a.names[:4])}", why.of_class(a.contributions)) for a in why.by_anchor[:5]])
for note in why.notes:
    print(f"note: {note}")

# %% [markdown]
# ## The patient in the graph
#
# The picture of the page of `subgnn serve`, as a file: a colour for each component, neighbours faint, anchors of the
# model as diamonds, a ring around a phenotype that supports the class (solid) or opposes it (dashed). In a notebook the
# last line shows it.

# %%
drawn = run.draw(patient, explain=True, neighbors=14)
drawn.save(OUT / "patient.svg", overwrite=True)
print(f"\n{OUT / 'patient.svg'}: {len(patient)} phenotypes, {len(why.by_component)} components, and their surroundings")
drawn  # noqa: B018

# %% [markdown]
# To go on by hand, with the same run in a browser: `subgnn serve rare_disease/run` (docs/deploy.md).
