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

const CHANNELS = { z0: "node vectors", topology: "topology statistics", size: "size", baseline: "the baseline's scores" };

// Only the side if the channel is listed above it.
const channelName = (item) => (item.level === "subchannel" ? item.name.split("/")[1] : CHANNELS[item.name] ?? item.name);

function bars(list, items, name, describe) {
  const values = items.map((item) => amount(item, name));
  const largest = Math.max(0, ...values.map(Math.abs));
  fill(list, ...items.map((item, i) => bar(describe.title(item), values[i], largest, describe.options(item))));
}

export function showWhy(explanation, { chosen, nameOf, onRemove }) {
  const real = explanation.task === "regression";
  const unit = real ? "" : "points";
  byId("why-class").textContent = real ? "" : chosen;
  byId("why-hint").textContent = real
    ? "How much of the value each of them contributes: the difference without it."
    : "Percentage points of probability that each of them contributes: the difference without it.";
  const byNode = new Map(explanation.by_node.map((item) => [item.node, amount(item, chosen)]));
  const nodes = [...explanation.by_node].sort((a, b) => Math.abs(byNode.get(b.node)) - Math.abs(byNode.get(a.node))).slice(0, FEW_NODES);
  bars(byId("by-node"), nodes, chosen, {
    title: (item) => nameOf(item.node, item.name),
    options: (item) => ({ unit, extra: make("button", {
      type: "button", class: "small", "aria-label": `Remove ${nameOf(item.node, item.name)}`, title: "remove", onclick: () => onRemove(item.node),
    }, "\u2715") }),
  });
  byId("components-part").hidden = explanation.by_component.length === 0;
  bars(byId("by-component"), explanation.by_component, chosen, {
    title: (item) => named(item.nodes.map((node, i) => nameOf(node, item.names[i]))), options: () => ({ unit }),
  });
  byId("channels-part").hidden = explanation.by_channel.length === 0;
  bars(byId("by-channel"), explanation.by_channel, chosen, {
    title: channelName, options: (item) => ({ unit, kind: item.level }),
  });
  byId("anchors-part").hidden = explanation.by_anchor.length === 0;
  bars(byId("by-anchor"), explanation.by_anchor.slice(0, FEW_ANCHORS), chosen, {
    title: (item) => `${named(item.nodes.map((node, i) => nameOf(node, item.names[i])))} (${item.channel})`, options: () => ({ unit }),
  });
  fill(byId("notes"), ...explanation.notes.map((note) => make("li", {}, note)));
  return byNode;
}

export function clearWhy() {
  for (const id of ["by-node", "by-component", "by-channel", "by-anchor", "notes"]) fill(byId(id));
  for (const id of ["components-part", "channels-part", "anchors-part"]) byId(id).hidden = true;
  byId("why-class").textContent = "";
  byId("why-hint").textContent = "";
}
