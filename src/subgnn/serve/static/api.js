// Requests to the server. A repeated request replaces the one that is under way.

import { byId } from "./dom.js";

const KEY = "subgnn-token";
const asking = new Map();

function askForToken() {
  const dialog = byId("token-dialog");
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(KEY, byId("token").value.trim());
      byId("token").value = "";
      resolve();
    }, { once: true });
  });
}

let tokenAsked = null;

async function send(path, options) {
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const answer = await fetch(path, { ...options, headers: { ...options.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) } });
    if (answer.status === 401) {
      tokenAsked ??= askForToken().finally(() => { tokenAsked = null; });
      await tokenAsked;
      continue;
    }
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error([body.error, body.hint].filter(Boolean).join("; ") || `the server answered ${answer.status}`);
    return body;
  }
}

// The answer, or null if a later request replaced this one. A body is sent as JSON; a file as it is.
export async function ask(question, path, body) {
  asking.get(question)?.abort();
  const controller = new AbortController();
  asking.set(question, controller);
  try {
    const options = { signal: controller.signal, method: body === undefined ? "GET" : "POST" };
    if (body instanceof Blob) options.body = body;
    else if (body !== undefined) Object.assign(options, { body: JSON.stringify(body), headers: { "content-type": "application/json" } });
    const answer = await send(path, options);
    return controller.signal.aborted ? null : answer;
  } catch (error) {
    if (controller.signal.aborted) return null;
    throw error;
  } finally {
    if (asking.get(question) === controller) asking.delete(question);
  }
}

export function forget(...questions) {
  for (const question of questions) asking.get(question)?.abort();
}
