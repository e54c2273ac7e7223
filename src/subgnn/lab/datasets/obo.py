"""Ontologies in OBO: the format of the Gene Ontology and of the Human Phenotype Ontology.

Only what the builders use is read: of each ``[Term]`` its id, name, namespace, alternative ids, whether it is obsolete,
and its ``is_a`` and ``part_of`` parents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from subgnn.errors import DataError, excerpt
from subgnn.lab.datasets.builder import source_lines

_TAGS = ("data-version", "id", "name", "namespace", "is_a", "relationship", "alt_id", "is_obsolete")


@dataclass(frozen=True, slots=True)
class Term:
    """One term; parents are ids, in the order of the file."""

    id: str
    name: str = ""
    namespace: str = ""
    is_a: tuple[str, ...] = ()
    part_of: tuple[str, ...] = ()
    alt_ids: tuple[str, ...] = ()
    obsolete: bool = False


@dataclass(frozen=True, slots=True)
class Ontology:
    """Terms by id, a directed acyclic graph that points at parents.

    Example:
        >>> leaf, root = Term("X:2", is_a=("X:1",)), Term("X:1")
        >>> sorted(Ontology({"X:1": root, "X:2": leaf}).ancestors(["is_a"])["X:2"])
        ['X:1', 'X:2']
    """

    terms: dict[str, Term]
    version: str = ""

    def merged(self) -> dict[str, str]:
        """Alternative ids, each with the live term it now belongs to."""
        return {other: term.id for term in self.terms.values() if not term.obsolete for other in term.alt_ids}

    def parents(self, term_id: str, relations: Iterable[str] = ("is_a", "part_of")) -> tuple[str, ...]:
        """Live parents by the given relations; one that is in another file is skipped."""
        term = self.terms[term_id]
        given = (p for relation in relations for p in (term.is_a if relation == "is_a" else term.part_of))
        return tuple(dict.fromkeys(p for p in given if p in self.terms and not self.terms[p].obsolete))

    def ancestors(self, relations: Iterable[str] = ("is_a", "part_of")) -> dict[str, frozenset[str]]:
        """For each live term, itself and everything above it."""
        kinds = tuple(relations)
        parents = {id_: self.parents(id_, kinds) for id_, term in self.terms.items() if not term.obsolete}
        found: dict[str, frozenset[str]] = {}
        try:
            for term in TopologicalSorter(parents).static_order():
                found[term] = frozenset({term}).union(*(found[p] for p in parents[term]))
        except CycleError as error:
            what = f"term {error.args[1][0]} is above itself"
            raise DataError(what, where="ontology", hint="is the OBO file complete?") from None
        return found


def read_obo(path: Path) -> Ontology:
    """Read an ontology from an OBO file, plain or gzipped."""
    stanzas: list[tuple[int, dict[str, list[str]]]] = [(0, {})]  # of the header, and of each term, by its first line
    inside = True
    for number, line in source_lines(path):
        if line.startswith("["):
            inside = line.strip() == "[Term]"
            if inside:
                stanzas.append((number, {}))
            continue
        tag, _, rest = line.partition(":")
        if inside and tag in _TAGS:
            # A comment follows " ! ": the parent's name.
            value = rest if tag == "name" else rest.split(" ! ")[0]
            stanzas[-1][1].setdefault(tag, []).append(value.strip())
    terms: dict[str, Term] = {}
    for number, values in stanzas[1:]:
        term = _term(values)
        if not term.id:
            raise DataError("a term without an id", where=f"{path}:{number}", hint="each [Term] has a line 'id: '")
        if term.id in terms:
            raise DataError(
                f"term {excerpt(term.id)} occurs twice", where=f"{path}:{number}", hint="each id is accepted once"
            )
        terms[term.id] = term
    if not terms:
        raise DataError(
            "it has no [Term]", where=str(path), hint="an ontology in OBO is accepted, such as go-basic.obo"
        )
    return Ontology(terms, stanzas[0][1].get("data-version", [""])[-1])


def _term(values: dict[str, list[str]]) -> Term:
    """A term from the values of each tag; of a tag that may occur once, the last value counts."""
    last = {tag: found[-1] for tag, found in values.items()}
    related = [value.partition(" ") for value in values.get("relationship", ())]
    return Term(
        id=last.get("id", ""),
        name=last.get("name", ""),
        namespace=last.get("namespace", ""),
        is_a=tuple(_first_word(value) for value in values.get("is_a", ())),
        part_of=tuple(_first_word(target) for relation, _, target in related if relation == "part_of"),
        alt_ids=tuple(values.get("alt_id", ())),
        obsolete=last.get("is_obsolete") == "true",
    )


def _first_word(text: str) -> str:
    return text.split()[0] if text.strip() else ""
