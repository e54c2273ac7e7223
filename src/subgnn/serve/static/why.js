// Contributions of nodes, components, channels and anchors to the chosen class.

import { byId, fill, make, signed } from "./dom.js";

const FEW_NODES = 60;
const FEW_ANCHORS = 10;
const NAMED = 4;

// In percentage points of probability, or in the unit of real-valued labels.
function amount(item, name) {
  if (item.probability_changes && name in item.probability_changes) return item.probability_changes[name] * 100;
  return Object.values(item.contributions)[0] ?? 0;
}

function bar(title, value, largest, { kind = "", unit = "", extra = null } = {}) {
  const inner = make("div", { class: `fill ${value >= 0 ? "up" : "down"}` });
  inner.style.width = `${largest > 0 ? (Math.abs(value) / largest) * 50 : 0}%`;
  return make("li", { class: kind },
    make("span", { class: "name", title }, title),
    make("div", { class: "track", "aria-hidden": "true" }, inner),
    make("span", { class: "number" }, signed(value, unit ? 1 : 4), unit ? make("span", { class: "unseen" }, ` ${unit}`) : null),
    extra ?? make("span"));
}

function named(names) {
  return names.slice(0, NAMED).join(", ") + (names.length > NAMED ? ` and ${names.length - NAMED} more` : "");
}

const CHANNELS = { z0: "node vectors", topology: "topology statistics", baseline: "the baseline's scores" };

// Only the side if the channel is listed above it.
const channelName = (item) => (item.level === "subchannel" ? item.name.split("/")[1] : CHANNELS[item.name] ?? item.name);

// All that contributes, with its name and amount: nodes, components, channels, and anchors.
export function contributions(explanation, { chosen, nameOf }) {
  const several = (item) => named(item.nodes.map((node, i) => nameOf(node, item.names[i])));
  const list = (items, title) => items.map((item) => ({ item, title: title(item), value: amount(item, chosen) }));
  const nodes = list(explanation.by_node, (item) => nameOf(item.node, item.name)).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  return {
    node: nodes.slice(0, FEW_NODES),
    component: list(explanation.by_component, several),
    channel: list(explanation.by_channel, channelName),
    anchor: list(explanation.by_anchor.slice(0, FEW_ANCHORS), (item) => `${several(item)} (${item.channel})`),
  };
}

export const unitOf = (explanation) => (explanation.task === "regression" ? "" : "points");

export function showWhy(explanation, { chosen, nameOf, onRemove }) {
  const real = explanation.task === "regression";
  const unit = unitOf(explanation);
  byId("why-class").textContent = real ? "" : chosen;
  byId("why-hint").textContent = `${explanation.sentence} ${real
    ? "Below, how much of the value each part contributes: the difference without it."
    : "Below, percentage points of probability that each part contributes: the difference without it."}`;
  const found = contributions(explanation, { chosen, nameOf });
  // One scale for all lists: equal bars are equal amounts.
  const largest = Math.max(0, ...Object.values(found).flat().map(({ value }) => Math.abs(value)));
  const show = (id, list, options) => fill(byId(id), ...list.map(({ item, title, value }) => bar(title, value, largest, { unit, ...options(item, title) })));
  show("by-node", found.node, (item, title) => ({ extra: make("button", {
    type: "button", class: "small", "aria-label": `Remove ${title}`, title: "remove", onclick: () => onRemove(item.node),
  }, "\u2715") }));
  show("by-component", found.component, () => ({}));
  show("by-channel", found.channel, (item) => ({ kind: item.level }));
  show("by-anchor", found.anchor, () => ({}));
  for (const part of ["component", "channel", "anchor"]) byId(`${part}s-part`).hidden = found[part].length === 0;
  fill(byId("notes"), ...explanation.notes.map((note) => make("li", {}, note)));
  return new Map(explanation.by_node.map((item) => [item.node, amount(item, chosen)]));
}

export function clearWhy() {
  for (const id of ["by-node", "by-component", "by-channel", "by-anchor", "notes"]) fill(byId(id));
  for (const id of ["components-part", "channels-part", "anchors-part"]) byId(id).hidden = true;
  byId("why-class").textContent = "";
  byId("why-hint").textContent = "";
}
