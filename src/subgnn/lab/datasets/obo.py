"""Ontologies in OBO: the format of the Gene Ontology and of the Human Phenotype Ontology.

Only what the builders use is read: of each ``[Term]`` its id, name, alternative ids, whether it is obsolete, and its
``is_a`` and ``part_of`` parents.
"""

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from subgnn.errors import DataError, excerpt
from subgnn.lab.datasets.builder import source_lines

_TAGS = ("data-version", "id", "name", "is_a", "relationship", "alt_id", "is_obsolete")


@dataclass(frozen=True, slots=True)
class Term:
    """One term; parents are ids, in the order of the file."""

    id: str
    name: str = ""
    is_a: tuple[str, ...] = ()
    part_of: tuple[str, ...] = ()
    alt_ids: tuple[str, ...] = ()
    obsolete: bool = False


@dataclass(frozen=True, slots=True)
class Ontology:
    """Terms by id, a directed acyclic graph that points at parents."""

    terms: dict[str, Term]
    version: str = ""

    def merged(self) -> dict[str, str]:
        """Alternative ids, each with the live term it now belongs to."""
        return {other: term.id for term in self.terms.values() if not term.obsolete for other in term.alt_ids}

    def parents(self, term_id: str, *, part_of: bool = True) -> tuple[str, ...]:
        """Live parents by ``is_a`` and, unless left out, ``part_of``; one that is in another file is skipped."""
        term = self.terms[term_id]
        given = (*term.is_a, *(term.part_of if part_of else ()))
        return tuple(dict.fromkeys(p for p in given if p in self.terms and not self.terms[p].obsolete))

    def ancestors(self, *, part_of: bool = True) -> dict[str, frozenset[str]]:
        """For each live term, itself and everything above it."""
        parents = {id_: self.parents(id_, part_of=part_of) for id_, term in self.terms.items() if not term.obsolete}
        found: dict[str, frozenset[str]] = {}
        try:
            for term in TopologicalSorter(parents).static_order():
                found[term] = frozenset({term}).union(*(found[p] for p in parents[term]))
        except CycleError as error:
            what = f"term {error.args[1][0]} is above itself"
            raise DataError(what, where="ontology", hint="is the OBO file complete?") from None
        return found


def read_obo(path: Path) -> Ontology:
    """Read an ontology from an OBO file, plain or gzipped; of a tag that may occur once, the last value counts."""
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
        last, where = {tag: found[-1] for tag, found in values.items()}, f"{path}:{number}"
        related = [value.partition(" ") for value in values.get("relationship", ())]
        term = Term(
            id=last.get("id", ""),
            name=last.get("name", ""),
            is_a=tuple(value.partition(" ")[0] for value in values.get("is_a", ())),
            part_of=tuple(to.strip().partition(" ")[0] for relation, _, to in related if relation == "part_of"),
            alt_ids=tuple(values.get("alt_id", ())),
            obsolete=last.get("is_obsolete") == "true",
        )
        if not term.id:
            raise DataError("a term without an id", where=where, hint="each [Term] has a line 'id: '")
        if term.id in terms:
            raise DataError(f"term {excerpt(term.id)} occurs twice", where=where, hint="each id is accepted once")
        terms[term.id] = term
    if not terms:
        hint = "an ontology in OBO is accepted, such as go-basic.obo"
        raise DataError("it has no [Term]", where=str(path), hint=hint)
    return Ontology(terms, stanzas[0][1].get("data-version", [""])[-1])
