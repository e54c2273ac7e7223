// The state of the page in its address: #run=NAME&nodes=1,2,3&class=NAME, nodes by row number. Browsers do not send the part after #.

export function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  const nodes = (given.get("nodes") ?? "").split(",").filter((text) => /^\d{1,10}$/.test(text)).map(Number);
  return { run: given.get("run"), nodes: [...new Set(nodes)], chosen: given.get("class") };
}

export function writeState({ run, nodes, chosen }, { replace = false } = {}) {
  const given = new URLSearchParams();
  given.set("run", run);
  if (nodes.length) given.set("nodes", nodes.join(","));
  if (chosen) given.set("class", chosen);
  const hash = `#${given.toString().replaceAll("%2C", ",")}`;
  if (hash === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", hash);
}
