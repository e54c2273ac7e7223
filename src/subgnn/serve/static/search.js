// A text field with a list of nodes below it: the combobox pattern of ARIA.

import { ask } from "./api.js";
import { byId, fill, make } from "./dom.js";

const WAIT = 120;

export function makeSearch({ path, onPick, onStatus, onProblem }) {
  const input = byId("search");
  const list = byId("options");
  let found = [];
  let active = -1;
  let timer = 0;

  function close() {
    found = [];
    active = -1;
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(place) {
    const node = found[place];
    if (!node) return;
    input.value = "";
    close();
    onPick(node);
    input.focus();
  }

  function mark(place) {
    active = place;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === place)));
    if (place < 0) return;
    input.setAttribute("aria-activedescendant", list.children[place].id);
    list.children[place].scrollIntoView({ block: "nearest" });
  }

  function show(nodes) {
    found = nodes;
    fill(list, ...nodes.map((node, i) => make("li", {
      id: `option-${i}`, role: "option", "aria-selected": "false",
      onpointerdown: (event) => { event.preventDefault(); choose(i); },
    },
    make("span", {}, node.name + (node.matched && node.matched !== node.name ? ` (${node.matched})` : "")),
    make("span", { class: "quiet" }, `${node.degree} neighbours`))));
    list.hidden = nodes.length === 0;
    input.setAttribute("aria-expanded", String(nodes.length > 0));
    mark(nodes.length ? 0 : -1);
    onStatus(nodes.length ? `${nodes.length} nodes found` : "no node found");
  }

  async function search() {
    const text = input.value.trim();
    if (!text) return close();
    try {
      const answer = await ask("search", `${path()}/nodes?limit=12&q=${encodeURIComponent(text.slice(0, 200))}`);
      if (answer && input.value.trim() === text) show(answer.nodes);
    } catch (error) {
      onProblem(error);
    }
    return undefined;
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, WAIT);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!found.length) return;
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      mark((active + step + found.length) % found.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(Math.max(active, 0));
    } else if (event.key === "Escape") {
      close();
    }
  });
}
