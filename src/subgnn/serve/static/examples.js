// The first screen: subgraphs of the run's dataset, each a click away.

import { byId, fill, make } from "./dom.js";

const key = (nodes) => [...nodes].sort((a, b) => a - b).join(",");

export function showExamples(card, onShow) {
  const { examples } = card;
  byId("first-title").textContent = examples.length ? `Start with a subgraph of the ${examples[0].split} split` : "No subgraph yet";
  byId("first-hint").textContent = examples.length
    ? "Or pick nodes by name, paste a list, or predict a whole table."
    : "Pick nodes by name, paste a list, or predict a whole table.";
  fill(byId("examples"), ...examples.map((one) => make("li", {}, make("button", { type: "button", onclick: () => onShow(one) },
    make("strong", {}, one.name), make("span", { class: "labels" }, one.labels.join(", ")),
    make("span", { class: "quiet" }, `${one.num_nodes} nodes: ${one.names.slice(0, 4).join(", ")}${one.num_nodes > 4 ? ", …" : ""}`)))));
}

// What the dataset says about these nodes, if they are one of the subgraphs that were shown.
export function makeKnown() {
  const known = new Map();
  return {
    add: (one) => known.set(key(one.nodes), one),
    text: (nodes) => {
      const one = known.get(key(nodes));
      return one ? `${one.name}, true label: ${one.labels.join(", ") || "none"}` : "";
    },
  };
}
