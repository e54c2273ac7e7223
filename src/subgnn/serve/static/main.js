// The page: shows the drawing, prediction, explanation and similar subgraphs of the picked nodes.

import { ask, forget } from "./api.js";
import { byId, componentColour, fill, make } from "./dom.js";
import { csv, save } from "./download.js";
import { makeKnown, showExamples } from "./examples.js";
import { makePicture } from "./picture.js";
import { clearPrediction, showPrediction } from "./prediction.js";
import { makeSearch } from "./search.js";
import { readState, writeState } from "./state.js";
import { clearSuggestions, showSuggestions } from "./suggestions.js";
import { makeUpload } from "./upload.js";
import { clearWhy, contributions, showWhy, unitOf } from "./why.js";

const FEW_NEIGHBOURS = 15;
const state = { run: null, nodes: [], chosen: null };
const names = new Map(); // of nodes in earlier answers
let cards = [];
let drawing = null;
let prediction = null;
let explanation = null;
let problemTimer = 0;
const known = makeKnown();

const path = () => `/api/runs/${encodeURIComponent(state.run)}`;
const nameOf = (node, fallback) => names.get(node) ?? fallback ?? asRow(node);
// Nodes are row numbers here; in a request digits alone are a name if the graph has names.
const asRow = (node) => `${cards.find((card) => card.name === state.run)?.row_prefix ?? "#"}${node}`;

function say(text) {
  byId("status").textContent = text;
}

function complain(error) {
  const box = byId("problem");
  box.textContent = error.message;
  box.hidden = false;
  clearTimeout(problemTimer);
  problemTimer = setTimeout(() => { box.hidden = true; }, 8000);
}

const picture = makePicture(byId("picture"), (node) => {
  if (!node) return fill(byId("selected"));
  const there = state.nodes.includes(node.id);
  const about = node.kind === "inside" ? `in component ${node.component + 1}` : node.kind === "border" ? `${node.links} edges into the subgraph` : "an anchor outside the border";
  const anchor = node.channels.length ? `, anchor of ${node.channels.join(", ")}` : "";
  return fill(byId("selected"), make("strong", {}, node.name), make("span", {}, `${about}, ${node.degree} neighbours${anchor}`),
    make("button", { type: "button", onclick: () => (there ? remove(node.id) : add([node])) }, there ? "Remove" : "Add"));
});

function showPicked() {
  const component = new Map((drawing?.nodes ?? []).map((node) => [node.id, node.component]));
  byId("count").textContent = state.nodes.length ? `(${state.nodes.length})` : "";
  document.querySelector("main").classList.toggle("empty", state.nodes.length === 0);
  byId("clear").disabled = byId("copy").disabled = state.nodes.length === 0;
  const focused = document.activeElement?.closest("#picked li")?.dataset.node;
  fill(byId("picked"), ...state.nodes.map((node) => {
    const chip = make("li", { "data-node": String(node) }, make("span", {}, nameOf(node)),
      make("button", { type: "button", "aria-label": `Remove ${nameOf(node)}`, onclick: () => remove(node) }, "\u2715"));
    chip.style.setProperty("--chip", `var(${componentColour(component.get(node) ?? null)})`);
    return chip;
  }));
  // Chips are rebuilt when their colours are known; the focus stays on the same chip.
  if (focused) byId("picked").querySelector(`[data-node="${focused}"] button`)?.focus();
}

function showDrawing() {
  picture.show(drawing);
  const left = drawing.left_out;
  byId("facts").textContent = `${drawing.num_components} component${drawing.num_components === 1 ? "" : "s"}, ${drawing.num_inside_edges} edges inside, `
    + `${drawing.num_border} neighbours` + (left.border ? `, of which ${left.border} are not drawn` : "") + (left.inside ? `; ${left.inside} of its nodes are not drawn` : "") + ".";
  const some = drawing.nodes.filter((node) => node.kind === "border").sort((a, b) => b.links - a.links || a.degree - b.degree).slice(0, FEW_NEIGHBOURS);
  fill(byId("neighbours"), ...some.map((node) => make("li", {}, make("span", {}, `${node.name}, ${node.links} edges into the subgraph`),
    make("button", { type: "button", class: "small", "aria-label": `Add ${node.name}`, onclick: () => add([node]) }, "Add"))));
  showPicked();
}

function showSaying(before) {
  const chosen = currentClass();
  showPrediction(prediction, before, {
    chosen,
    threshold: cards.find((card) => card.name === state.run)?.threshold,
    onChoose: (name, focus) => {
      state.chosen = name;
      writeState(state, { replace: true });
      showSaying(before);
      showReasons();
      if (focus) byId("classes").querySelector("[aria-checked='true']")?.focus();
    },
  });
}

function currentClass() {
  const known = Object.keys(prediction?.probabilities ?? {});
  if (state.chosen && known.includes(state.chosen)) return state.chosen;
  if (known.includes(prediction?.label)) return prediction.label;
  return known.reduce((best, name) => (best === null || prediction.probabilities[name] > prediction.probabilities[best] ? name : best), null);
}

function showReasons() {
  if (!explanation) return;
  picture.push(showWhy(explanation, { chosen: currentClass() ?? explanation.classes[0], nameOf, onRemove: remove }));
}

function showSimilar(nearest) {
  fill(byId("similar"), ...nearest.map((near) => make("tr", {},
    make("td", { title: near.names.join(", ") }, near.nodes.length < near.num_nodes ? near.name : make("button", {
      type: "button", class: "link", "aria-label": `Show ${near.name}`, onclick: () => present(near),
    }, near.name)), make("td", { class: "labels" }, near.labels.join(", ")),
    make("td", { class: "number" }, near.distance.toFixed(3)), make("td", { class: "number" }, String(near.num_nodes)),
    make("td", { class: "number", title: near.shared_nodes }, String(near.shared)))));
  byId("near-hint").textContent = nearest.length ? "Known subgraphs in the same part of the graph, the nearest first." : "The run has no labelled subgraphs to compare with.";
}

// Show a subgraph of the dataset in place of the picked nodes.
function present(one) {
  one.nodes.forEach((node, i) => names.set(node, one.names[i]));
  known.add(one);
  change(one.nodes);
}

function shownAsCsv() {
  const chosen = currentClass() ?? "";
  const rows = [["part", "name", "class", "value", "unit"]];
  for (const [name, p] of Object.entries(prediction?.probabilities ?? {})) rows.push(["prediction", name, name, p, "probability"]);
  if (prediction?.value !== null && prediction?.value !== undefined) rows.push(["prediction", "value", "", prediction.value, ""]);
  if (!explanation) return csv(rows);
  const unit = unitOf(explanation) ? "percentage points" : "";
  const found = contributions(explanation, { chosen: chosen || explanation.classes[0], nameOf });
  for (const [part, list] of Object.entries(found)) rows.push(...list.map(({ item, title, value }) => [part, part === "channel" ? item.name : title, chosen, Number(value.toPrecision(6)), unit]));
  return csv(rows);
}

async function guarded(work, onFailure = () => {}) {
  try {
    await work();
  } catch (error) {
    onFailure(error);
    complain(error);
  }
}

// Request everything about the nodes; `before` is the prediction to compare with.
function refresh(before) {
  showPicked();
  if (!state.nodes.length) {
    forget("predict", "draw", "explain", "similar", "complete");
    drawing = prediction = explanation = null;
    picture.clear();
    clearPrediction();
    clearWhy();
    clearSuggestions();
    for (const id of ["similar", "neighbours", "selected"]) fill(byId(id));
    byId("facts").textContent = byId("near-hint").textContent = "";
    return Promise.resolve();
  }
  byId("known").textContent = known.text(state.nodes);
  const nodes = state.nodes.map(asRow);
  const why = document.querySelector(".why");
  why.setAttribute("aria-busy", "true");
  return Promise.all([
    guarded(async () => {
      const answer = await ask("predict", `${path()}/predict`, { subgraphs: [nodes] });
      if (!answer) return;
      [prediction] = answer.predictions;
      showSaying(before);
      showReasons(); // the class is known only now if the explanation arrived first
      const p = prediction.probabilities[prediction.label];
      say(`Prediction: ${prediction.label || "no class"}${p === undefined ? "" : `, ${(p * 100).toFixed(0)} percent`}. ${byId("change").textContent}`);
    }, clearPrediction),
    guarded(async () => {
      const answer = await ask("draw", `${path()}/draw`, { nodes, most: Number(byId("most").value) });
      if (!answer) return;
      drawing = answer;
      for (const node of drawing.nodes) names.set(node.id, node.name);
      showDrawing();
      showReasons();
    }),
    guarded(async () => {
      const answer = await ask("explain", `${path()}/explain`, { subgraphs: [nodes] });
      if (!answer) return;
      [explanation] = answer.explanations;
      explanation.nodes.forEach((node, i) => names.has(node) || names.set(node, explanation.names[i]));
      why.setAttribute("aria-busy", "false");
      showReasons();
    }, () => { why.setAttribute("aria-busy", "false"); explanation = null; clearWhy(); }),
    guarded(async () => {
      if (!cards.find((one) => one.name === state.run)?.num_known) return showSimilar([]);
      const answer = await ask("similar", `${path()}/search`, { subgraphs: [nodes], top: 10 });
      if (answer) showSimilar(answer.results[0].nearest);
    }),
    suggest(nodes),
  ]);
}

async function suggest(nodes) {
  try {
    const answer = await ask("complete", `${path()}/complete`, { subgraphs: [nodes], top: 10 });
    if (answer) showSuggestions(answer.completions[0], (node) => add([node]));
  } catch (error) {
    clearSuggestions(error.message); // as of an exported run, which has no known subgraphs
  }
}

function change(nodes) {
  state.nodes = [...new Set(nodes)];
  writeState(state);
  explanation = null;
  return refresh(prediction);
}

function add(nodes) {
  for (const node of nodes) names.set(node.id, node.name);
  change([...state.nodes, ...nodes.map((node) => node.id)]);
}

function remove(node) {
  const place = state.nodes.indexOf(node);
  change(state.nodes.filter((other) => other !== node));
  // The pressed button is gone: focus the next one, or the search.
  const buttons = byId("picked").querySelectorAll("button");
  (buttons[Math.min(place, buttons.length - 1)] ?? byId("search")).focus();
}

async function addPasted(replace) {
  const given = byId("pasted").value.split(/[\s,;]+/).filter(Boolean).map((text) => text.slice(0, 200));
  const warning = byId("not-understood");
  warning.textContent = "";
  if (!given.length) return;
  const answer = await ask("resolve", `${path()}/resolve`, { nodes: given });
  if (!answer) return;
  const lists = [[answer.unknown, "not known"], [answer.several, "ambiguous"]];
  warning.textContent = lists.filter(([list]) => list.length).map(([list, what]) => `${list.length} ${what}: ${list.slice(0, 10).join(", ")}`).join("; ");
  for (const node of answer.nodes) names.set(node.id, node.name);
  const found = answer.nodes.map((node) => node.id);
  if (found.length) {
    byId("pasted").value = "";
    await change(replace ? found : [...state.nodes, ...found]);
  }
}

function showCard() {
  const card = cards.find((one) => one.name === state.run);
  if (!card) return;
  const score = card.test?.micro_f1 ?? card.test?.r2;
  const parts = [`${card.recipe} on ${card.dataset}`, `${card.num_nodes.toLocaleString("en")} nodes`, `${card.num_edges.toLocaleString("en")} edges`,
    card.classes.length ? `${card.classes.length} classes` : card.task, score === undefined || score === null ? null : `test ${card.test.micro_f1 === undefined ? "R²" : "micro-F1"} ${score.toFixed(3)}`];
  byId("card").textContent = parts.filter(Boolean).join(" · ");
  card.examples.forEach(known.add);
  showExamples(card, present);
  showAbout(card);
}

function showAbout(card) {
  const score = (metrics) => Object.entries(metrics ?? {}).filter(([name, value]) => name !== "loss" && typeof value === "number")
    .map(([name, value]) => `${name.replaceAll("_", "-")} ${value.toFixed(3)}`).join(", ");
  const facts = [["Recipe", card.recipe], ["Method", card.method], ["Dataset", card.dataset], ["Task", card.task], ["Seed", card.seed],
    ["Networks", card.members > 1 ? `the mean of ${card.members}; below, the epochs of the first` : ""],
    ["Epochs", `${card.selected_epoch} of ${card.epochs}`], ["Training", `${card.num_training} subgraphs`], ["Validation", score(card.val)], ["Test", score(card.test)],
    ["Channels", card.channels.join(", ")], ["Trained with", `subgnn ${card.trained_with.subgnn ?? "?"}, torch ${card.trained_with.torch ?? "?"}`]];
  fill(byId("about"), ...facts.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));
  byId("note").textContent = card.note;
}

function apply(given) {
  state.run = cards.some((card) => card.name === given.run) ? given.run : cards[0]?.name;
  const card = cards.find((one) => one.name === state.run);
  state.nodes = given.nodes.filter((node) => node < (card?.num_nodes ?? 0));
  state.chosen = given.chosen;
  byId("run").value = state.run;
  showCard();
}

function listen() {
  byId("run").addEventListener("change", (event) => {
    // Another run may have another graph, with other nodes.
    const before = cards.find((card) => card.name === state.run);
    const after = cards.find((card) => card.name === event.target.value);
    if (before.graph_hash !== after.graph_hash) { state.nodes = []; names.clear(); }
    state.run = after.name;
    state.chosen = prediction = explanation = drawing = null;
    writeState(state);
    showCard();
    refresh(null);
  });
  byId("most").addEventListener("change", () => refresh(null));
  byId("clear").addEventListener("click", () => { prediction = null; change([]); byId("search").focus(); });
  byId("save-csv").addEventListener("click", () => save(`${state.run} prediction.csv`, shownAsCsv(), "text/csv"));
  byId("save-png").addEventListener("click", () => save(`${state.run} subgraph.png`, picture.png()));
  byId("save-svg").addEventListener("click", () => save(`${state.run} subgraph.svg`, picture.svg(), "image/svg+xml"));
  makeUpload({ path, onProblem: complain, onStatus: say });
  byId("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      say("Link copied.");
    } catch {
      complain(new Error("the browser does not allow copying here; copy the address instead"));
    }
  });
  byId("paste-form").addEventListener("submit", (event) => {
    event.preventDefault();
    guarded(() => addPasted(event.submitter?.value === "replace"));
  });
  const follow = () => { prediction = explanation = drawing = null; apply(readState()); refresh(null); };
  addEventListener("popstate", follow);
  makeSearch({ path, onPick: (node) => add([node]), onStatus: say, onProblem: complain });
}

async function start() {
  if (matchMedia("(max-width: 700px)").matches) byId("most").value = "20";
  cards = (await ask("runs", "/api/runs")).runs;
  fill(byId("run"), ...cards.map((card) => make("option", { value: card.name }, card.name)));
  apply(readState());
  writeState(state, { replace: true });
  listen();
  await refresh(null);
  document.body.dataset.ready = "true";
}

guarded(start);
