// A table in, a table back: the rows of a file with their predictions.

import { ask } from "./api.js";
import { byId, fill, make } from "./dom.js";
import { csv, save } from "./download.js";

const FEW_ROWS = 20;
const FEW_NODES = 10;

const text = (cell) => (cell === null ? "" : String(cell));
const shown = (cell) => (typeof cell === "number" && !Number.isInteger(cell) ? cell.toFixed(3) : text(cell));

function summary({ rows, num_unknown: count, unknown, notes }) {
  const left = count ? `${count} ${count === 1 ? "node is" : "nodes are"} not in the graph and left out: ` : "";
  const names = unknown.slice(0, FEW_NODES).map((one) => one.given + (one.nearest ? ` (nearest: ${one.nearest})` : ""));
  return [`${rows.length} subgraphs${rows.length > FEW_ROWS ? `, the first ${FEW_ROWS} are shown` : ""}.`, ...notes,
    left ? `${left}${names.join(", ")}${count > names.length ? ", …" : ""}` : ""].filter(Boolean);
}

export function makeUpload({ path, onProblem, onStatus }) {
  const panel = byId("upload-form").closest("section");
  let answer = null;

  function show(found, name) {
    answer = { name: `${name.replace(/\.[^.]*$/, "")} predictions.csv`, rows: [found.columns, ...found.rows.map((row) => row.map(text))] };
    const line = (tag, row, options = () => ({})) => make("tr", {}, ...row.map((cell) => make(tag, options(cell), shown(cell))));
    byId("answers-title").textContent = `Predictions of ${name} by ${found.run}`;
    fill(byId("upload-notes"), ...summary(found).map((words) => make("li", {}, words)));
    fill(byId("uploaded"), make("thead", {}, line("th", found.columns, () => ({ scope: "col" }))),
      make("tbody", {}, ...found.rows.slice(0, FEW_ROWS).map((row) => line("td", row, (cell) => ({ title: text(cell), class: typeof cell === "number" ? "number" : "" })))));
    byId("answers").hidden = false;
    byId("answers").focus();
    onStatus(`${found.rows.length} subgraphs predicted.`);
  }

  byId("upload-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const [file] = byId("file").files;
    if (!file) return;
    const query = new URLSearchParams({ format: "json", unknown: byId("drop").checked ? "drop" : "error", name: file.name.slice(-100) });
    panel.setAttribute("aria-busy", "true");
    try {
      const found = await ask("table", `${path()}/table?${query}`, file);
      if (found) show(found, file.name);
    } catch (error) {
      onProblem(error);
    } finally {
      panel.setAttribute("aria-busy", "false");
    }
  });
  byId("upload-save").addEventListener("click", () => save(answer.name, csv(answer.rows), "text/csv"));
}
