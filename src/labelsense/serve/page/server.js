// The server: requests, what goes wrong with them in words for people, and what is known of the server and its model.

import { $, memory } from "./helpers.js";

const WAIT_UNTIL_BUSY = 500; // milliseconds until a line says that it takes time

export const state = {
  service: null, // what it allows
  project: null, // the name of the model
  about: null, // what the model is
  key: null,
  running: 0, // requests
};

export const teaches = () => state.service.learning.includes(state.project);

/** What went wrong, in words for people. */
export class Trouble extends Error {
  constructor(words, status = 0, wait = 0) {
    super(words);
    this.status = status;
    this.wait = wait;
  }
}

/** Return the answer to a request: JSON, or the headers of an answer that has none. */
export async function ask(path, body, signal) {
  const headers = state.key ? { Authorization: `Bearer ${state.key}` } : {};
  const request = { headers, signal };
  if (body !== undefined) Object.assign(request, { method: "POST", body: JSON.stringify(body) });
  if (body !== undefined) headers["Content-Type"] = "application/json";
  setRunning(1);
  try {
    const answer = await fetch(path, request);
    if (answer.status === 204) return answer.headers;
    const content = await answer.json().catch(() => null);
    if (answer.ok && content !== null) return content;
    throw new Trouble(wordsFor(answer.status, content), answer.status, Number(answer.headers.get("Retry-After") ?? 1));
  } catch (error) {
    if (error instanceof Trouble || error.name === "AbortError") throw error;
    throw new Trouble("The server does not answer. Your text is kept here: start the server again, or try again.");
  } finally {
    setRunning(-1);
  }
}

/** Return an answer, or, where the model cannot give one, the words that say so. */
export async function answerOrReason(path, body) {
  try {
    return await ask(path, body);
  } catch (error) {
    if (error.status === 409 || error.status === 400) return { reason: error.message };
    throw error;
  }
}

function wordsFor(status, content) {
  if (status === 401) return "This needs an API key. Whoever runs the server can give you one.";
  if (status === 503) return `The server is busy. ${content?.detail ?? ""}`;
  return content?.detail ?? `The server has answered ${status}, which this page does not understand.`;
}

export const v1 = (route, project = state.project) => `/v1/projects/${encodeURIComponent(project)}/${route}`;
export const ui = (route, project = state.project) => `/ui/projects/${encodeURIComponent(project)}/${route}`;

function setRunning(change) {
  state.running += change;
  clearTimeout(setRunning.timer);
  if (state.running)
    setRunning.timer = setTimeout(() => {
      $("busy").hidden = false;
    }, WAIT_UNTIL_BUSY);
  else $("busy").hidden = true;
}

/** Do something with the server; say what went wrong, if it did, with a way to try again. */
export async function attempt(work, again = work) {
  try {
    await work();
    $("trouble").hidden = true;
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Trouble)) throw error;
    $("trouble-text").textContent = error.message;
    $("trouble-again").hidden = error.status !== 0 && error.status !== 503;
    $("trouble-again").onclick = () => attempt(again);
    $("key-form").hidden = error.status !== 401;
    $("key-form").onsubmit = (event) => {
      event.preventDefault();
      setKey($("key").value);
      $("key-form").hidden = true;
      attempt(again);
    };
    $("trouble").hidden = false;
  }
}

export function setKey(key) {
  state.key = key;
  memory.set("key", key, "sessionStorage");
}
