"""EM-USER: the workouts of a user of a fitness network, labelled by gender (paper, appendix B).

Every record of Endomondo is one workout of one user. For several users to have completed the same workout, a workout is
identified by what they have in common: its sport and the place where it starts, rounded to a grid. Two workouts are
joined where enough users completed both.

The workouts that two users share form a clique. Large cliques are uninformative and expensive, so their edges are
thinned at random, as the paper breaks up the cliques of popular combinations.

*Differs from the paper:* it does not say what makes two records one workout, which cliques are broken up, nor how many
of their edges are kept; these are settings. Its split, 75/15/15 by workout, sums to more than all: here users are split
70/15/15, stratified by gender.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, triu

from subgnn.data.formats.text import read_lines
from subgnn.data.graph import Graph
from subgnn.data.splits import stratified_split
from subgnn.data.strings import NodeNames, Strings
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError, choices, excerpt
from subgnn.lab.datasets.builder import (
    Builder,
    Draft,
    Files,
    OnStep,
    Source,
    at_least,
    check_fractions,
    within,
)
from subgnn.rng import stream

Nodes = NDArray[np.int64]
Place = tuple[str, str, str]
"""Sport, latitude and longitude; the latter two are empty for a workout without a route."""

GENDERS = ("female", "male")
UNKNOWN = "unknown"
_MAX_RECORD = 32 * 2**20
_MAX_LITERAL = 4 * 2**20
_ACCEPTED = "one JSON object or Python dict per line, with userId, gender, id and sport, is accepted"


@dataclass(frozen=True, slots=True)
class JoinSettings:
    """Which workouts are joined by an edge.

    Args:
        min_users: users that completed both workouts.
        max_clique: workouts that two users may share before the edges among them are thinned.
        keep: the probability that an edge of a larger clique stays.
    """

    min_users: int = 2
    max_clique: int = 10
    keep: float = 0.5

    def __post_init__(self) -> None:
        at_least(1, min_users=self.min_users, max_clique=self.max_clique)
        within(0, 1, keep=self.keep)


@dataclass(frozen=True, slots=True)
class EmUserSettings:
    """What identifies a workout, what joins two of them, and which users are subgraphs.

    Args:
        decimals: of the degrees of the place where a route starts; 2 is a grid of about a kilometre.
        min_workouts: workouts that a user needs to be a subgraph.
        fractions: of train, val and test.
    """

    decimals: int = 2
    joining: JoinSettings = field(default_factory=JoinSettings)
    min_workouts: int = 3
    fractions: tuple[float, float, float] = (0.7, 0.15, 0.15)

    def __post_init__(self) -> None:
        within(0, 6, decimals=self.decimals)
        at_least(1, min_workouts=self.min_workouts)
        check_fractions(self.fractions)


@dataclass(frozen=True, slots=True)
class Workout:
    """One record; ``start`` is the latitude and longitude where the route begins, None where there is no route."""

    record: int
    user: str
    gender: str
    id: str
    sport: str
    start: tuple[float, float] | None

    def place(self, decimals: int) -> Place:
        """What identifies the workout, with the start rounded to some decimals."""
        if self.start is None:
            return self.sport, "", ""
        # Adding 0 turns -0.0 into 0.0.
        latitude, longitude = (f"{round(degrees, decimals) + 0.0:.{decimals}f}" for degrees in self.start)
        return self.sport, latitude, longitude


def read_workouts(path: Path) -> Iterator[Workout]:
    """Workouts of Endomondo in the layout of the FitRec project, one record per line, in the order of the file.

    A record has ``userId``, ``gender``, ``id``, ``sport`` and, where it was tracked, ``longitude`` and ``latitude``,
    lists of equal length along the route. A line is JSON, or the literal of a Python dict, as in the public file; it is
    never executed.
    """
    for record, (_, line) in enumerate(read_lines(path, max_line=_MAX_RECORD), 1):
        where = f"{path}: record {record}"
        fields = _parse(line.strip(), where)
        gender = _text(fields, "gender", where).lower()
        if gender not in (*GENDERS, UNKNOWN):
            hint = choices(gender, (*GENDERS, UNKNOWN))
            raise DataError(f"field 'gender' is {excerpt(gender)}", where=where, hint=hint)
        user, number, sport = (_text(fields, key, where) for key in ("userId", "id", "sport"))
        yield Workout(record, user, gender, number, sport, _start(fields, where))


def _parse(text: str, where: str) -> dict[str, Any]:
    # A dict literal whose quotes can be exchanged is JSON, which parses a hundred times faster.
    plain = text.startswith("{'") and '"' not in text and "\\" not in text
    try:
        found = json.loads(text.replace("'", '"') if plain else text)
    except (ValueError, RecursionError):
        if len(text) > _MAX_LITERAL:
            what = f"this is not JSON, and it is too long for a Python literal ({len(text):,} characters)"
            raise DataError(what, where=where, hint=_ACCEPTED) from None
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise DataError(f"this is not a record: {excerpt(text)}", where=where, hint=_ACCEPTED) from None
    if not isinstance(found, dict):
        raise DataError(f"this is a {type(found).__name__}, not a record", where=where, hint=_ACCEPTED)
    return found


def _text(fields: dict[str, Any], key: str, where: str) -> str:
    """A field that is text or a whole number, as text."""
    if key not in fields:
        hint = f"it has {excerpt(', '.join(map(str, fields)))}"
        raise DataError(f"no field '{key}'", where=where, hint=hint)
    value = fields[key]
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        what = f"field '{key}' is {excerpt(str(value))}"
        raise DataError(what, where=where, hint="text or a whole number is needed")
    return " ".join(str(value).split())


def _start(fields: dict[str, Any], where: str) -> tuple[float, float] | None:
    route = {key: fields[key] for key in ("latitude", "longitude") if fields.get(key) is not None}
    if not route:
        return None
    if len(route) < 2:
        what = f"field '{next(iter(route))}' is given without the other"
        raise DataError(what, where=where, hint="a route has both latitude and longitude")
    for key, value in route.items():
        if not isinstance(value, list) or not value:
            raise DataError(f"field '{key}' is {excerpt(str(value))}", where=where, hint="a list of degrees is needed")
    if len(route["latitude"]) != len(route["longitude"]):
        what = f"{len(route['latitude'])} latitudes but {len(route['longitude'])} longitudes"
        raise DataError(what, where=where, hint="give one of each for every point of the route")
    for key, most in (("latitude", 90), ("longitude", 180)):
        value = route[key][0]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or abs(value) > most:
            what = f"field '{key}' begins with {excerpt(str(value))}"
            raise DataError(what, where=where, hint=f"-{most} to {most} degrees are accepted")
    return float(route["latitude"][0]), float(route["longitude"][0])


def join_workouts(
    histories: Sequence[Nodes], size: int, settings: JoinSettings, rng: np.random.Generator
) -> tuple[Nodes, Nodes, int]:
    """The edges between workouts, smaller end first, and how many were thinned out.

    An edge is thinned where two users share more than ``max_clique`` workouts and both its ends are among them; where
    ``min_users`` is 1, every history is such a clique.

    Args:
        histories: the workouts of each user, in ascending order.
        size: the number of workouts.
    """
    rows = np.repeat(np.arange(len(histories)), [len(history) for history in histories])
    columns = np.concatenate([*histories, np.empty(0, np.int64)])
    # A workout of fewer users has no edges; without it the products below stay small.
    often = (np.bincount(columns, minlength=size) >= settings.min_users)[columns]
    done = csr_array((np.ones(int(often.sum()), np.int32), (rows[often], columns[often])), shape=(len(histories), size))
    both = triu(done.T @ done, k=1, format="coo")
    enough = both.data >= settings.min_users
    keys = np.sort(both.row[enough].astype(np.int64) * size + both.col[enough])
    crowded = np.zeros(len(keys), bool)
    for clique in _large_cliques(done, settings) if len(keys) else ():
        a, b = np.triu_indices(len(clique), k=1)
        wanted = clique[a] * size + clique[b]
        found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        crowded[found[keys[found] == wanted]] = True
    stays = ~crowded | (rng.random(len(keys)) < settings.keep)
    tails, heads = np.divmod(keys[stays], size)
    return tails, heads, int(len(keys) - stays.sum())


def _large_cliques(done: csr_array, settings: JoinSettings) -> Iterator[Nodes]:
    """Sets of more than ``max_clique`` workouts: those two users share, or one history where one user is enough."""
    histories = [np.sort(row).astype(np.int64) for row in np.split(done.indices, done.indptr[1:-1])]
    if settings.min_users == 1:
        yield from (history for history in histories if len(history) > settings.max_clique)
        return
    shared = triu(done @ done.T, k=1, format="coo")
    large = shared.data > settings.max_clique
    for i, j in zip(shared.row[large], shared.col[large], strict=True):
        yield np.intersect1d(histories[i], histories[j])


def build_em_user(files: Files, settings: EmUserSettings, seed: int, on_step: OnStep) -> Draft:
    """Build EM-USER; users of unknown gender contribute to the graph, but are not subgraphs."""
    records = files["records"]
    genders: dict[str, tuple[str, int]] = {}  # of each user, and the record that states it
    workouts: dict[str, set[Place]] = {}
    ids: set[str] = set()
    repeated = without_route = 0
    for count, workout in enumerate(read_workouts(records)):
        if count % 1000 == 0:
            on_step(f"reading workouts: {count:,}")
        if workout.id in ids:
            repeated += 1
            continue
        ids.add(workout.id)
        known, stated_in = genders.get(workout.user, (UNKNOWN, 0))
        if UNKNOWN not in (known, workout.gender) and known != workout.gender:
            what = f"user {workout.user} is {workout.gender}, but {known} in record {stated_in}"
            raise DataError(what, where=f"{records}: record {workout.record}", hint="one gender per user is accepted")
        if known == UNKNOWN:
            genders[workout.user] = workout.gender, workout.record
        without_route += workout.start is None
        workouts.setdefault(workout.user, set()).add(workout.place(settings.decimals))
    on_step("joining workouts")
    places = sorted({place for found in workouts.values() for place in found})
    if not places:
        raise DataError("no workouts", where=str(records), hint="one record per line is needed")
    number = {place: node for node, place in enumerate(places)}
    histories = {
        user: np.array(sorted(number[place] for place in found), np.int64) for user, found in sorted(workouts.items())
    }
    rng = stream(seed, "build/em-user/thin")
    tails, heads, thinned = join_workouts(list(histories.values()), len(places), settings.joining, rng)
    columns = [[" ".join(place).strip() for place in places], *zip(*places, strict=True)]
    titles = ("name", "sport", "latitude", "longitude")
    names = NodeNames({t: Strings.of(c) for t, c in zip(titles, columns, strict=True)}, primary="name")
    graph = Graph.from_edges(tails, heads, num_nodes=len(places), names=names)
    gender = {user: stated for user, (stated, _) in genders.items()}
    subgraphs, dropped = _subgraphs(histories, gender, len(places), settings, seed)
    dropped |= {"repeated records": repeated, "edges thinned": thinned}
    note = (
        "Nodes are workouts, known by sport and start; edges join those that several users completed both of, a "
        "subgraph is the workouts of a user, its label the gender. "
        f"{without_route:,} records have no route: their workout is known by sport alone. "
        "Not the paper's own file: it does not say what makes two records one workout."
    )
    return Draft(graph, subgraphs, note, dropped)


def _subgraphs(
    histories: dict[str, Nodes], gender: dict[str, str], num_nodes: int, settings: EmUserSettings, seed: int
) -> tuple[SubgraphSet, dict[str, int]]:
    """The users that are subgraphs, and how many were dropped, by reason."""
    known = [user for user in histories if gender[user] != UNKNOWN]
    kept = [user for user in known if len(histories[user]) >= settings.min_workouts]
    dropped = {
        "users of unknown gender": len(histories) - len(known),
        "users with few workouts": len(known) - len(kept),
    }
    labels = [gender[user] for user in kept]
    if len(set(labels)) < 2:
        what = f"only {len(kept)} users are left, with {len(set(labels))} genders"
        raise DataError(what, where="em-user", hint=f"both are needed; dropped: {dropped}")
    codes = np.unique(np.array(labels), return_inverse=True)[1]
    splits = stratified_split(codes, settings.fractions, stream(seed, "build/em-user/split"))
    subgraphs = SubgraphSet.from_lists(
        [histories[user] for user in kept],
        num_nodes=num_nodes,
        labels=labels,
        splits=[SPLITS[split] for split in splits],
        names=kept,
    )
    return subgraphs, dropped


EM_USER = Builder(
    "em-user",
    {
        "records": Source(
            "Endomondo workouts, one record per line",
            "https://sites.google.com/eng.ucsd.edu/fitrec-project (endomondoHR.json.gz); Ni, Muhlstein and McAuley, "
            "2019",
            "none stated; see the page of the FitRec project",
        )
    },
    EmUserSettings(),
    build_em_user,
)
