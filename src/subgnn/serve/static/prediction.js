// The prediction: the classes, the one that is explained, and the effect of the last change.

import { byId, fill, make, percent, signed } from "./dom.js";

const FEW = 12;

function bar(share, threshold) {
  const inner = make("div", { class: "fill" });
  inner.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  const track = make("div", { class: "track", "aria-hidden": "true" }, inner);
  if (threshold !== undefined) {
    const tick = make("div", { class: "tick" });
    tick.style.left = `${Math.max(0, Math.min(1, threshold)) * 100}%`;
    track.append(tick);
  }
  return track;
}

function row(name, p, before, { chosen, onChoose, threshold }) {
  const delta = before === undefined ? null : p - before;
  const shown = delta === null || Math.abs(delta) < 0.0005 ? "" : signed(delta * 100, 1);
  return make("div", {
    class: "class", role: "radio", "aria-checked": String(chosen), tabindex: chosen ? "0" : "-1", "data-class": name,
    onclick: () => onChoose(name),
    onkeydown: (event) => {
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (step) {
        event.preventDefault();
        const rows = [...event.currentTarget.parentElement.children];
        const next = rows[(rows.indexOf(event.currentTarget) + step + rows.length) % rows.length];
        onChoose(next.dataset.class, true);
      } else if (event.key === " " || event.key === "Enter") {
        event.preventDefault();
        onChoose(name, true);
      }
    },
  },
  make("span", { class: "name" }, name, threshold === undefined ? null : make("span", { class: "limit" }, `predicted above ${percent(threshold)}`)),
  make("span", { class: "number" }, percent(p)),
  make("span", { class: `delta ${delta > 0 ? "up" : "down"}` }, shown, shown ? make("span", { class: "unseen" }, " points since the last change") : null),
  bar(p, threshold));
}

export function showPrediction(prediction, before, { chosen, onChoose, threshold }) {
  const entries = Object.entries(prediction.probabilities).sort((a, b) => b[1] - a[1]);
  const real = prediction.value !== null && prediction.value !== undefined;
  byId("label").textContent = real ? String(prediction.value) : prediction.label || (threshold ? "no class above its threshold" : "no class above 50 %");
  const aim = threshold ? `threshold for ${threshold.aim}, chosen on ${threshold.chosen_on === "validation" ? "the validation split" : "out-of-fold predictions"}` : "";
  const novelty = typeof prediction.novelty === "number" ? `more unusual than ${percent(prediction.novelty)} of the training subgraphs` : "";
  byId("decision").textContent = [aim, novelty].filter(Boolean).join("; ");
  const shown = entries.filter(([name], i) => i < FEW || name === chosen);
  fill(byId("classes"), ...shown.map(([name, p]) => row(name, p, before?.probabilities[name], { chosen: name === chosen, onChoose, threshold: threshold?.thresholds[name] })));
  byId("change").textContent = changed(prediction, before, real);
}

function changed(prediction, before, real) {
  if (!before) return "";
  if (real) return `${signed(prediction.value - before.value, 4)} since the last change`;
  if (before.label !== prediction.label) return `was ${before.label || "no class"} before the last change`;
  const p = prediction.probabilities[prediction.label];
  const was = before.probabilities[prediction.label];
  if (p === undefined || was === undefined) return "";
  return `${signed((p - was) * 100, 1)} points since the last change`;
}

export function clearPrediction() {
  byId("label").textContent = "";
  byId("decision").textContent = "";
  byId("change").textContent = "";
  fill(byId("classes"));
}
