// Learning: a text with its labels is learned and forgotten, and labels are added to those that the model gave.

import { desk, documentOf } from "./desk.js";
import { $, make, on, pause, speak, whole } from "./helpers.js";
import { course } from "./how.js";
import { drawLabels, subjects } from "./labels.js";
import { ask, attempt, state, ui, v1 } from "./server.js";
import { suggest } from "./text.js";

const lesson = { last: null, completions: [], at: -1 };
const beginning = (text) => (text.length > 40 ? `${text.slice(0, 40).replace(/\s+\S*$/, "")} …` : text);

/** Send a document to be learned or forgotten, once however often the button is pressed; then show what changed. */
async function teach(step, document, project, done) {
  $("learn").disabled = $("forget").disabled = true;
  let number = 0;
  await attempt(
    async () => {
      const headers = await ask(v1(step, project), [document]);
      number = Number(headers.get("Labelsense-Update"));
      $("learned-text").textContent = done();
      speak($("learned-text").textContent);
      drawLabels();
    },
    () => teach(step, document, project, done),
  );
  $("learn").disabled = $("forget").disabled = false;
  if (number) await attempt(() => seeLearned(number));
}

function learn() {
  const { text } = desk;
  const labels = subjects();
  const names = labels.map((item) => item.label).join(", ") || "no label";
  const document = { ...documentOf(text), subjects: labels.map(({ uri }) => ({ uri })) };
  return teach("learn", document, state.project, () => {
    lesson.last = { document, text, names, verdicts: new Map(desk.verdicts), project: state.project };
    desk.verdicts.clear();
    $("learned").hidden = $("forget").hidden = false;
    return `Learned that “${beginning(text)}” has ${names}.`;
  });
}

function forget() {
  const { document, text, names, verdicts, project } = lesson.last;
  return teach("forget", document, project, () => {
    if (desk.text === text) desk.verdicts = verdicts;
    $("forget").hidden = true;
    return `Forgotten that “${beginning(text)}” has ${names}.`;
  });
}

/** Wait until the model has learned what the server has written down, and ask it again. */
async function seeLearned(number) {
  for (let i = 0; i < 80; i++) {
    const { updates } = await ask(ui("model"));
    if (!updates || updates.applied >= number) break;
    await pause(i < 20 ? 100 : 1000);
  }
  course.text = null;
  await suggest();
}

// A label to add, completed from the vocabulary.

async function complete() {
  const query = $("add").value.trim();
  if (!query) return closeCompletions();
  const { labels } = await ask(
    `${ui("complete")}?${new URLSearchParams({ query, limit: 8, language: $("language").value })}`,
  );
  if ($("add").value.trim() !== query) return undefined;
  const known = labels.some((entry) => entry.label.toLowerCase() === query.toLowerCase());
  lesson.completions = known ? labels : [...labels, { uri: query, label: query, fresh: true }];
  lesson.at = 0;
  drawCompletions();
  return undefined;
}

function drawCompletions() {
  $("completions").replaceChildren(
    ...lesson.completions.map((entry, i) =>
      make(
        "li",
        {
          role: "option",
          id: `completion-${i}`,
          "aria-selected": String(i === lesson.at),
          onpointerdown: (event) => {
            event.preventDefault();
            addLabel(i);
          },
        },
        entry.label,
        make("span", { class: "small" }, entry.fresh ? " a new label" : entry.count ? ` ${whole(entry.count)}` : ""),
      ),
    ),
  );
  $("completions").hidden = !lesson.completions.length;
  $("add").setAttribute("aria-expanded", String(lesson.completions.length > 0));
  if (lesson.completions.length) $("add").setAttribute("aria-activedescendant", `completion-${lesson.at}`);
  else $("add").removeAttribute("aria-activedescendant");
}

function closeCompletions() {
  lesson.completions = [];
  drawCompletions();
}

function addLabel(i) {
  const { uri, label } = lesson.completions[i];
  const known = desk.items.some((item) => item.uri === uri);
  desk.verdicts.set(uri, { label, verdict: known ? "accepted" : "added" });
  if (!known) desk.items.push({ uri, label, notation: null, score: null, other: null });
  $("add").value = "";
  closeCompletions();
  drawLabels();
  speak(`${label} added`);
}

function onAddKey(event) {
  const n = lesson.completions.length;
  const step = { ArrowDown: 1, ArrowUp: n - 1 }[event.key];
  if (!n || (!step && event.key !== "Enter" && event.key !== "Escape")) return;
  event.preventDefault();
  if (event.key === "Enter") addLabel(lesson.at);
  else if (event.key === "Escape") closeCompletions();
  else {
    lesson.at = (lesson.at + step) % n;
    drawCompletions();
  }
}

export function listenToLearning() {
  on("add", "input", () => attempt(complete));
  on("add", "keydown", onAddKey);
  on("add", "blur", closeCompletions);
  on("learn", "click", learn);
  on("forget", "click", forget);
  on("lesson-clear", "click", () => {
    desk.verdicts.clear();
    suggest();
  });
}
