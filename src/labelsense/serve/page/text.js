// The text: typed, opened, dropped or an example, and the request for its labels.

import { currentText, desk, documentOf } from "./desk.js";
import { $, acceptDrops, make, memory, on, slider, whole } from "./helpers.js";
import { showLabels } from "./labels.js";
import { drawMirror, shiftMarks } from "./mirror.js";
import { closeReasons, showReasons } from "./reasons.js";
import { ask, attempt, state, Trouble, ui, v1 } from "./server.js";

const WAIT_AFTER_KEY = 150; // milliseconds until a text is sent

function onTyped() {
  memory.set("text", currentText());
  shiftMarks();
  $("clear").hidden = !currentText();
  clearTimeout(onTyped.timer);
  onTyped.timer = setTimeout(() => suggest(), WAIT_AFTER_KEY);
}

/** Show another text. */
function setText(text) {
  $("document").value = text;
  desk.verdicts.clear();
  desk.marks = [];
  $("learned").hidden = true;
  closeReasons();
  memory.set("text", text);
  $("clear").hidden = !text;
  drawMirror();
  return suggest(true);
}

/** Ask for labels; those of before stay until the new ones are there. A fresh text gets them in their own order. */
export async function suggest(fresh = false) {
  if (!state.about) return; // it is asked when the model is there
  const text = currentText();
  desk.asked?.abort();
  if (!text.trim()) {
    desk.text = text;
    desk.items = [];
    closeReasons();
    showLabels([], true);
    return;
  }
  desk.asked = new AbortController();
  const { signal } = desk.asked;
  await attempt(
    async () => {
      checkLength(text);
      const about = { ...documentOf(text), limit: Number($("limit").value), language: $("language").value };
      const names = desk.other ? [state.project, desk.other] : [state.project];
      const answers = await Promise.all(names.map((name) => ask(v1("suggest", name), about, signal)));
      desk.text = text;
      showLabels(merge(...answers.map((answer) => answer.results)), fresh);
      if (desk.chosen) await showReasons(false);
    },
    () => suggest(fresh),
  );
}

function checkLength(text) {
  const most = state.service.limits.text;
  if (text.length > most) {
    throw new Trouble(
      `The text has ${whole(text.length)} characters, and the server takes ${whole(most)}. Shorten it.`,
      413,
    );
  }
}

/** Return the labels of one or two models, each once. */
function merge(results, others = []) {
  const found = new Map(results.map((result) => [result.uri, { ...result, other: null }]));
  for (const result of others) {
    const known = found.get(result.uri);
    if (known) known.other = result.score;
    else found.set(result.uri, { ...result, score: null, other: result.score });
  }
  return [...found.values()];
}

async function readText(file) {
  if (file.size > 4 * state.service.limits.text) {
    await attempt(() => {
      throw new Trouble(`${file.name} is longer than the server takes.`, 413);
    });
    return;
  }
  const text = await file.text();
  if (text.includes("\0")) {
    await attempt(() => {
      throw new Trouble(`${file.name} is not a text. Save it as plain text first.`, 400);
    });
    return;
  }
  await setText(text);
}

export async function showExamples() {
  const { examples } = await ask(ui("examples"));
  $("examples-line").hidden = !examples.length;
  $("examples").replaceChildren(
    ...examples
      .slice(0, 6)
      .map(({ title, text }) =>
        make("button", { type: "button", class: "plain", onclick: () => setText(text) }, title),
      ),
  );
}

/** Say what the model does, by its most frequent labels. */
export async function writeWelcome() {
  const query = new URLSearchParams({ sort: "count", order: "descending", limit: 4, language: $("language").value });
  const { total, labels } = await ask(`${ui("labels")}?${query}`);
  const some = labels.map((entry) => entry.label).join(", ");
  desk.welcome = `This model gives a text the labels that suit it, out of ${whole(total)}: ${some}, ... They appear here while you type.`;
}

export function listenToText() {
  on("document", "input", onTyped);
  on("clear", "click", () => {
    setText("");
    $("document").focus();
  });
  on("open", "click", () => $("file").click());
  on("file", "change", () => {
    if ($("file").files[0]) readText($("file").files[0]);
    $("file").value = "";
  });
  acceptDrops($("sheet"), readText);
  slider("limit", (value) => {
    $("limit-value").textContent = value;
    clearTimeout(onTyped.timer);
    onTyped.timer = setTimeout(() => suggest(), WAIT_AFTER_KEY);
  });
  document.querySelector(".skip").addEventListener("click", () => setTimeout(() => $("document").focus()));
}
