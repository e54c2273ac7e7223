"""Explain predictions: contributions of nodes, components, channels and anchors to each class.

A node or a component is left out: the smaller subgraph is prepared anew, with its own anchors, so a contribution is
exactly the difference of two predictions, for every model that predicts new subgraphs. Channels and anchors are masked
(:mod:`subgnn.inference.masking`).
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import scipy
import torch
from numpy.typing import NDArray

from subgnn.channels.topology import CLUSTERING
from subgnn.data.graph import Graph
from subgnn.data.own_times import as_rows, at_own_times, join_lists, times_of
from subgnn.data.subgraphs import SubgraphSet, absent_of, with_absent
from subgnn.inference.answers import CLASS, AnswerTable, Files, Query
from subgnn.inference.explanation import (
    Compare,
    ComponentContribution,
    Explanation,
    MemberContribution,
    NodeContribution,
    Outputs,
    StatisticContribution,
    differences,
)
from subgnn.inference.masking import Masking, subgraph_inputs
from subgnn.inference.open import OpenedRun
from subgnn.inference.predictor import Predictor, Subgraphs, names_of
from subgnn.inference.records import Records
from subgnn.kernels.arrays import csr
from subgnn.kernels.induced import induced_components, induced_csr
from subgnn.models.auto import MemberOutputs
from subgnn.ragged import Ragged
from subgnn.storage.tables import Column, Part, open_output, write_table
from subgnn.task import task_of

FORMAT, VERSION = "subgnn-explanations", 1
_BATCH = 64
_BATCH_NODES = 100_000  # nodes of the smaller subgraphs that are prepared together
_TITLES = ("subgraph", "label", "by", "kind", "item")
_DIGITS = 9  # of contributions that count as equal
_TAIL = 0.05  # of training subgraphs below and above the usual values

Nodes = NDArray[np.int32]
Item = TypeVar("Item", NodeContribution, StatisticContribution)
OnExplained = Callable[[Predictor, Query, int, Explanation | None], None]
"""Called with the model, the subgraphs of the file, the row of one of them, and its explanation, if it has one."""


class Explainer:
    """Explains the predictions of any model; whatever does not depend on the subgraphs is computed once.

    The mean vectors of the training subgraphs in ``background``, or ``reference`` (networks, width), replace masked
    channels; without them, 0 does. Single nodes are left out in subgraphs of at most ``max_nodes``.
    """

    def __init__(
        self,
        predictor: Predictor,
        *,
        background: Ragged | None = None,
        reference: NDArray[np.float32] | None = None,
        max_nodes: int = 500,
        max_anchors: int = 100,
    ) -> None:
        self.predictor, self.max_nodes, self.max_anchors = predictor, max_nodes, max_anchors
        self._background = background if background is not None and len(background) else None
        self._reference = None if reference is None else np.array(reference, np.float32)
        self._source = predictor.with_channels()
        self._member = predictor.member_with_channels

    @classmethod
    def of_run(cls, run: OpenedRun, *, max_nodes: int = 500, max_anchors: int = 100) -> Self:
        """Explain predictions of a run; the background is the training split of its dataset."""
        background, limits = run.training_subgraphs(), {"max_nodes": max_nodes, "max_anchors": max_anchors}
        return cls(run.predictor, background=background, reference=run.reference, **limits)

    def explain(self, subgraphs: Subgraphs) -> list[Explanation]:
        rows = self.predictor.rows(subgraphs)
        nodes = SubgraphSet.from_lists(list(rows), num_nodes=self.predictor.graph.num_nodes).nodes
        nodes = as_rows(with_absent(nodes, absent_of(rows)), times_of(rows))
        batches = [range(begin, min(begin + _BATCH, len(nodes))) for begin in range(0, len(nodes), _BATCH)]
        return [found for batch in batches for found in self._explain_batch(nodes.take(batch))]

    def recorded(self, found: Sequence[Explanation]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The answers and the explanations as records hold them."""
        limits = {"max_nodes": self.max_nodes, "max_anchors": self.max_anchors}
        explained = [one.to_json() | limits for one in found]
        answers = [{"label": one["label"], "scores": one["probabilities"] or one["logits"]} for one in explained]
        return answers, explained

    def reference(self) -> NDArray[np.float32] | None:
        """The mean vectors of the background by each network; None without channels or a background."""
        if self._reference is None and self._background is not None:
            self._reference = self.predictor.mean_vectors(self._background)
        return self._reference

    @torch.no_grad()
    def _explain_batch(self, subgraphs: Ragged) -> Iterator[Explanation]:
        predictor = self.predictor
        components = at_own_times(predictor.graph, subgraphs, _components, join_lists)
        own = {} if predictor.portfolio is None else predictor.portfolio.member_outputs(subgraphs)
        masked: Sequence[Masking | None] = self._masked(subgraphs, own) or [None] * len(subgraphs)
        if self._source is predictor:  # the networks with channels are the whole model
            whole = np.stack([one.output for one in masked if one is not None])
        else:
            portfolio = predictor.portfolio
            whole = predictor.outputs(subgraphs) if portfolio is None else portfolio.combined(own)
        without: Any = [((), ())] * len(subgraphs)
        if predictor.model.predicts_new_subgraphs:
            without = self._leave_one_out(subgraphs, components, whole)
        others = by_statistic(predictor, subgraphs, whole, own), by_member(predictor, whole, own)
        for parts, output, masking, (by_node, by_component), statistics, members in zip(
            components, whole, masked, without, *others, strict=True
        ):
            found = self._explain_one(parts, output, masking)
            ordered: dict[str, Any] = {"by_node": by_node, "by_statistic": statistics}
            ordered = {name: _by_contribution(items, found) for name, items in ordered.items()}
            yield replace(found, by_component=by_component, by_member=members, **ordered)

    def _masked(self, subgraphs: Ragged, own: MemberOutputs) -> list[Masking]:
        """The networks with channels, for each subgraph; none if the model has no channels."""
        source = self._source
        if source is None:
            return []
        measured = source.measured(subgraphs)
        each = (subgraph_inputs(one.network, measured.inputs, measured.prepared) for one in measured.networks)
        inputs = zip(*each, strict=True)  # of all networks, by subgraph
        compare: list[Compare] = [partial(differences, self.predictor)] * len(subgraphs)
        portfolio = self.predictor.portfolio
        if portfolio is not None and self._member is not None:

            def through(whole: Callable[[Outputs], Outputs]) -> Compare:
                return lambda every, without: differences(self.predictor, whole(every[None])[0], whole(without))

            compare = list(map(through, portfolio.outputs_given_member(self._member, own)))
        pairs = zip(inputs, compare, strict=True)
        return [Masking(source, mine, compare=how, max_anchors=self.max_anchors) for mine, how in pairs]

    def _leave_one_out(
        self, subgraphs: Ragged, components: Sequence[Sequence[Nodes]], whole: Outputs
    ) -> list[tuple[tuple[NodeContribution, ...], tuple[ComponentContribution, ...]]]:
        """Contributions of the nodes (by id) and components of each subgraph; none of a lone one, or of too many."""
        smaller: list[Nodes] = []
        counts = []
        owners: list[int] = []
        for place, (row, parts) in enumerate(zip(subgraphs, components, strict=True)):
            nodes, rest = ([*some] if 1 < len(some) <= self.max_nodes else [] for some in (row[:, None], parts))
            smaller += [np.setdiff1d(row, out, assume_unique=True) for out in nodes + rest]
            counts.append((len(nodes), len(rest)))
            owners += [place] * (len(nodes) + len(rest))
        # Each part keeps the times and absent nodes of its subgraph; equal parts are computed once.
        own = subgraphs.take(owners)
        times, absent = times_of(own), absent_of(own)
        first: dict[tuple[bytes, float, bytes], int] = {}
        chosen: list[int] = []
        places = []
        for i, row in enumerate(smaller):
            at, lacking = 0.0 if times is None else float(times[i]), b"" if absent is None else absent[i].tobytes()
            places.append(first.setdefault((row.tobytes(), at, lacking), len(first)))
            if len(first) > len(chosen):
                chosen.append(i)
        own = own.take(chosen)
        different = as_rows(with_absent(Ragged.from_rows(smaller[i] for i in chosen), absent_of(own)), times_of(own))
        computed = [output for batch in different.batches(_BATCH_NODES) for output in self.predictor.outputs(batch)]
        outputs = (computed[place] for place in places)
        graph, found = self.predictor.graph, []
        for parts, output, (num_nodes, num_components) in zip(components, whole, counts, strict=True):
            without = np.array([next(outputs) for _ in range(num_nodes + num_components)]).reshape(-1, len(output))
            numbers = differences(self.predictor, output, without)
            component = {int(node): c for c, nodes in enumerate(parts) for node in nodes}
            by_node = tuple(
                NodeContribution(node, names_of(graph, [node])[0], component[node], **n)
                for node, n in zip(sorted(component), numbers[:num_nodes], strict=False)
            )
            by_component = tuple(
                ComponentContribution(c, tuple(nodes.tolist()), names_of(graph, nodes.tolist()), **n)
                for c, (nodes, n) in enumerate(zip(parts, numbers[num_nodes:], strict=False))
            )
            found.append((by_node, by_component))
        return found

    def _explain_one(self, components: Sequence[Nodes], whole: Outputs, masking: Masking | None) -> Explanation:
        """One subgraph's explanation, except for contributions of its nodes and components."""
        predictor, spec = self.predictor, self.predictor.spec
        scores = predictor.scores(whole[None])[0]
        task = task_of(spec.task)
        nodes, masked = sorted(int(node) for part in components for node in part), dict[str, Any]()
        if masking is not None:
            leading = int(task.decide(scores[None], predictor.thresholds)[0]) if task.one_class else None
            reference = self.reference()
            masked["by_channel"] = masking.by_channel(reference)
            masked["by_anchor"] = () if masking.too_many else masking.by_anchor(leading)
            masked["reference"] = "zero" if reference is None else "training mean"
            masked["member"] = self._member or ""
        return Explanation(
            nodes=tuple(nodes),
            names=names_of(predictor.graph, nodes),
            method=spec.method,
            task=spec.task,
            label=predictor.label_text(scores),
            classes=task.columns(spec.classes),
            logits=tuple((scores if task.real else whole).tolist()),
            probabilities=() if task.real else tuple(scores.tolist()),
            notes=tuple(self._notes(len(nodes), len(components), masking)),
            **masked,
        )

    def _notes(self, num_nodes: int, num_components: int, masking: Masking | None) -> Iterator[str]:
        """State what is missing from an explanation, and why."""
        method = self.predictor.spec.method
        if not self.predictor.model.predicts_new_subgraphs:
            yield f"{method} cannot predict new subgraphs, so no node or component can be left out"
        else:
            nodes = num_nodes, "node", "they were not left out one by one"
            for count, word, what in (nodes, (num_components, "component", "none was left out")):
                if count == 1:
                    yield f"the subgraph is a single {word}: without it, nothing is left"
                elif count > self.max_nodes:
                    yield f"{count} {word}s are more than max_nodes ({self.max_nodes}): {what}"
        portfolio = self.predictor.portfolio
        if portfolio is not None and self._member is not None:
            share = portfolio.shares[self._member]
            yield f"channels and anchors are those of member {self._member}, which has {share:.0%} of the weight"
        if masking is None:
            yield f"{method} has no channels and no anchors"
        elif masking.too_many:
            yield f"{masking.num_anchors:,} anchors are too many to mask one by one"
        elif masking.num_anchors > self.max_anchors:
            yield f"{self.max_anchors} of {masking.num_anchors:,} anchors are listed: those that matter most"


def _components(graph: Graph, subgraphs: Ragged) -> list[list[Nodes]]:
    parts = induced_components(*graph.csr, subgraphs)
    rows = iter(parts.nodes)
    return [[next(rows) for _ in range(count)] for count in parts.counts]


def _by_contribution(items: Sequence[Item], found: Explanation) -> tuple[Item, ...]:
    """Items by their contribution to the predicted class, or to the value, the largest first; then as they were."""
    return tuple(sorted(items, key=lambda item: -round(found.of_class(item.contributions), _DIGITS)))


def by_statistic(
    predictor: Predictor, subgraphs: Ragged, whole: Outputs, own: MemberOutputs
) -> list[list[StatisticContribution]]:
    """The statistics that the model, or the heaviest member that has any, decides by, each replaced by its median."""
    portfolio = predictor.portfolio
    through: Sequence[Callable[[Outputs], Outputs]] = [lambda outputs: outputs] * len(subgraphs)
    found = predictor.fitted.statistics(subgraphs)
    if portfolio is not None:
        for member in sorted(portfolio.parts, key=portfolio.shares.__getitem__, reverse=True):
            found = portfolio.parts[member].statistics(subgraphs)
            if found is not None:
                through = portfolio.outputs_given_member(member, own)
                break
    if found is None:
        return [[] for _ in subgraphs]
    answers: list[list[StatisticContribution]] = []
    usual = np.quantile(found.known, [0.5, _TAIL, 1 - _TAIL], axis=0).T.tolist()
    triangles = at_own_times(predictor.graph, subgraphs, _triangle_edges, join_lists)
    for row, (edges, combine) in enumerate(zip(triangles, through, strict=True)):
        numbers = differences(predictor, whole[row], combine(found.without[row]))
        answers.append([])
        for column, (name, n, (median, low, high)) in enumerate(zip(found.names, numbers, usual, strict=True)):
            value, known = float(found.values[row, column]), found.known[:, column]
            near = 1e-9 * max(1.0, abs(value))
            below, above = (float(some.mean()) for some in (known < value - near, known > value + near))
            made_by = edges if name == CLUSTERING else ()
            answers[row].append(StatisticContribution(name, value, median, low, high, below, above, made_by, **n))
    return answers


def _triangle_edges(graph: Graph, subgraphs: Ragged) -> list[tuple[tuple[str, str], ...]]:
    """The edges inside each subgraph that are in triangles, by name."""
    found = []
    for nodes in subgraphs:
        offsets, neighbors = induced_csr(csr(*graph.csr), nodes)
        inside = scipy.sparse.csr_array((np.ones(len(neighbors)), neighbors, offsets), shape=(len(nodes), len(nodes)))
        ends = np.stack((inside @ inside).multiply(inside).nonzero())
        names = names_of(graph, nodes.tolist())
        found.append(tuple((names[a], names[b]) for a, b in sorted(zip(*ends.tolist(), strict=True)) if a < b))
    return found


def by_member(predictor: Predictor, whole: Outputs, own: MemberOutputs) -> list[tuple[MemberContribution, ...]]:
    """The members of a portfolio, the heaviest first: what each predicts alone, and what it adds to the whole."""
    portfolio = predictor.portfolio
    if portfolio is None:
        return [()] * len(whole)
    found: list[list[MemberContribution]] = [[] for _ in whole]
    for name, (outputs, without) in portfolio.members_alone_and_left_out(own).items():
        part, share = predictor.part(name), portfolio.shares[name]
        for row, scores in enumerate(part.scores(outputs)):
            (numbers,) = differences(predictor, whole[row], without[row][None])
            label, alone = part.label_text(scores), tuple(scores.tolist())
            found[row].append(MemberContribution(name, part.spec.method, share, label, alone, **numbers))
    return [tuple(sorted(items, key=lambda item: -item.weight)) for items in found]


def write_explanations(
    run: Path,
    files: Files,
    *,
    max_nodes: int = 500,
    max_anchors: int = 100,
    on_explained: OnExplained | None = None,
    record: Path | None = None,
) -> Query:
    """Explain the predictions for a file of subgraphs, as JSON or as a row for each item, and return the subgraphs."""
    form = files.output_format(others=[".json"])
    explainer = Explainer.of_run(files.open(run), max_nodes=max_nodes, max_anchors=max_anchors)
    query, spec = files.read(explainer.predictor), explainer.predictor.spec
    records = None if record is None else Records(record, run, explainer.predictor, graph=files.graph)
    query.refuse_empty()

    def explanations() -> Iterator[tuple[int, Explanation | None]]:
        for row, one in query.answered(_BATCH, explainer.explain):
            if records is not None and one is not None:
                nodes = query.matched.nodes.take([row])
                records.add([query.members.nodes_of(row)], nodes, *explainer.recorded([one]))
            if on_explained is not None:
                on_explained(explainer.predictor, query, row, one)
            yield row, one

    named = [(Column("name"), "subgraph_")] * query.members.named

    def parts() -> Iterator[Part]:
        for row, one in explanations():
            if one is not None:
                start, end = (query.text(row), one.label), [query.members.names[row] for _ in named]
                yield list(zip(*((*start, *item, *numbers, *end) for *item, numbers in one.rows()), strict=True))

    with open_output(files.out, overwrite=files.overwrite) as file:
        if form not in (None, "jsonl"):
            columns = [(Column(title), "") for title in _TITLES]
            columns += [(Column(title, float), CLASS) for title in task_of(spec.task).columns(spec.classes)]
            table = AnswerTable.titled([*columns, *named], parts())
            write_table(file, form, table.columns, table.parts, excel_safe=files.excel_safe)
            return query
        if form is None:  # one object with an explanation per line, else these lines alone
            file.write((json.dumps({"format": FORMAT, "version": VERSION})[:-1] + ', "explanations": [\n').encode())
        for row, one in explanations():
            found = query.about(row) | ({"dropped": query.dropped(row)} if query.drops else {})
            found |= {} if one is None else one.to_json()
            end = "" if form is not None or row == len(query) - 1 else ","
            file.write((json.dumps(found, ensure_ascii=False) + end + "\n").encode("utf-8", "backslashreplace"))
        file.write(b"]}\n" if form is None else b"")
    return query
