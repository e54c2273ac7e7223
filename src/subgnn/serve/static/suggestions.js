// Nodes that may be missing in the subgraph, each a click away.

import { byId, fill, make, percent } from "./dom.js";

const REASONS = { diffusion: "diffusion", common_neighbours: "common neighbours", known_subgraphs: "known subgraphs" };

export function showSuggestions(suggestions, onAdd) {
  const focused = byId("suggestions").contains(document.activeElement);
  fill(byId("suggestions"), ...suggestions.map((node) => make("tr", {},
    make("td", {}, node.name),
    make("td", { class: "number" }, percent(node.probability)),
    make("td", { class: "number" }, String(node.neighbours)),
    make("td", {}, REASONS[node.reason] ?? node.reason),
    make("td", {}, make("button", { type: "button", class: "small", "aria-label": `Add ${node.name}`, onclick: () => onAdd(node) }, "Add")))));
  byId("suggest-hint").textContent = suggestions.length
    ? "The chance is that a node belongs to a subgraph that has lost a fifth of its members."
    : "All nodes are in the subgraph.";
  // The pressed button is gone: focus that of the node that is now first.
  if (focused) byId("suggestions").querySelector("button")?.focus();
}

export function clearSuggestions(why = "") {
  fill(byId("suggestions"));
  byId("suggest-hint").textContent = why;
}
