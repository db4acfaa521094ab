// The threshold: a line between labels that can be dragged, and a slider. What is above it can be copied and saved.

import { desk, isAbove } from "./desk.js";
import { $, download, make, on, slider, speak, two } from "./helpers.js";
import { drawLesson, fillRow, placeLine, speakLabels } from "./labels.js";
import { attempt, state, Trouble } from "./server.js";

export function setThreshold(value) {
  desk.threshold = value;
  $("threshold").value = desk.threshold;
  $("threshold-value").textContent = two(desk.threshold);
  showOrigin();
  for (const row of $("labels").children) {
    fillRow(
      row,
      desk.items.find((item) => item.uri === row.dataset.uri),
    );
  }
  placeLine();
  drawLesson();
}

export function defaultThreshold() {
  return state.about.threshold;
}

function showOrigin() {
  const ours = desk.threshold === defaultThreshold();
  const chosen = state.about.report?.expected?.F1 !== undefined;
  const words = chosen ? `threshold ${two(defaultThreshold())}, chosen by F1` : "the usual threshold";
  const back = make(
    "button",
    {
      type: "button",
      class: "plain",
      onclick: () => {
        setThreshold(defaultThreshold());
        speakLabels();
      },
    },
    `back to ${two(defaultThreshold())}`,
  );
  $("threshold-origin").replaceChildren(ours ? words : back);
}

/** Return the threshold at a height of the list: at the middle of a label it is the label's score. */
function thresholdAt(y) {
  const middles = [...$("labels").children]
    .map((row, i) => ({ y: row.offsetTop + row.offsetHeight / 2, score: desk.items[i].score }))
    .filter((place) => place.score !== null);
  if (!middles.length) return desk.threshold;
  const top = { y: 0, score: 1 };
  const bottom = { y: middles.at(-1).y + 40, score: 0 };
  const places = [top, ...middles, bottom];
  const next = places.findIndex((place) => place.y > y);
  if (next <= 0) return next < 0 ? 0 : 1;
  const [a, b] = [places[next - 1], places[next]];
  return a.score + ((b.score - a.score) * (y - a.y)) / (b.y - a.y);
}

function dragLine(event) {
  const line = $("line");
  line.setPointerCapture(event.pointerId);
  event.preventDefault();
  const origin = $("labels").getBoundingClientRect().top;
  const move = (moved) => {
    const y = Math.min(Math.max(moved.clientY - origin, 0), $("labels").offsetHeight);
    setThreshold(Math.round(100 * thresholdAt(y)) / 100);
    placeLine(y);
  };
  line.classList.add("dragging");
  line.addEventListener("pointermove", move);
  line.addEventListener(
    "lostpointercapture",
    () => {
      line.removeEventListener("pointermove", move);
      line.classList.remove("dragging");
      placeLine();
      speakLabels();
    },
    { once: true },
  );
}

// Copy and save: what is above the line.

const given = () => desk.items.filter(isAbove);

async function copyLabels() {
  const lines = given()
    .map((item) => `${item.label}\t${two(item.score)}`)
    .join("\n");
  try {
    await navigator.clipboard.writeText(lines);
    flashWord($("copy"), "Copied");
  } catch {
    await attempt(() => {
      throw new Trouble("The browser does not let pages copy here. Save does it.", 400);
    });
  }
}

function saveLabels() {
  const labels = given().map(({ uri, label, notation, score }) => ({ uri, label, notation, score }));
  const content = { text: desk.text, model: state.project, threshold: desk.threshold, labels };
  download("labels.json", "application/json", `${JSON.stringify(content, null, 2)}\n`);
}

function flashWord(button, word) {
  const before = button.dataset.word ?? button.textContent;
  button.dataset.word = before;
  button.textContent = word;
  speak(word);
  setTimeout(() => {
    button.textContent = before;
  }, 1500);
}

export function listenToThreshold() {
  on("line", "pointerdown", dragLine);
  slider("threshold", (value) => {
    setThreshold(value);
    speakLabels();
  });
  on("copy", "click", copyLabels);
  on("save", "click", saveLabels);
}
