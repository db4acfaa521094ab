"use strict";
// The page of `labelsense serve`: Text (labels, why, how, learning), Batch, Model. No framework, no build step, and
// nothing from elsewhere. Sections: helpers, the server, text, labels, why, how, learning, batch, model, start.

// ---- helpers

const WAIT_AFTER_KEY = 150; // milliseconds until a text is sent
const WAIT_UNTIL_BUSY = 500; // until a line says that it takes time
const WAIT_TO_SPEAK = 1000; // until a screen reader is told
const MOVING = matchMedia("(prefers-reduced-motion: no-preference)");
const SVG = "http://www.w3.org/2000/svg";

const $ = (id) => document.getElementById(id);
const two = (number) => number.toFixed(2);
const whole = (number) => number.toLocaleString("en");
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const signed = (number) => `${number <= -0.0005 ? "−" : "+"}${Math.abs(number).toFixed(3)}`;
const plural = (number, word) => `${whole(number)} ${word}${number === 1 ? "" : "s"}`;
const ordinal = (n) => `${whole(n)}${n % 100 > 10 && n % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th")}`;
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Return an element with attributes (those that begin with "on" are listeners, null leaves one out) and children. */
function make(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Return the name of a label in pieces between which a line may break: behind colons, slashes, hyphens and the like. */
function breakable(name) {
  return name.split(/(?<=[:/_.-])(?=[^:/_.-])/).flatMap((piece, i) => (i ? [make("wbr"), piece] : [piece]));
}

/** What this browser remembers; nothing, where it may not. */
const memory = {
  get(name, store = "localStorage") {
    try {
      return window[store].getItem(`labelsense.${name}`);
    } catch {
      return null;
    }
  },
  set(name, value, store = "localStorage") {
    try {
      window[store].setItem(`labelsense.${name}`, value);
    } catch {
      /* it is only for comfort */
    }
  },
};

function speak(text) {
  clearTimeout(speak.timer);
  speak.timer = setTimeout(() => {
    $("status").textContent = text;
  }, WAIT_TO_SPEAK);
}

function download(name, type, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
}
const system = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
setTheme(memory.get("theme") ?? system()); // before anything is painted

// ---- the server

const state = {
  service: null, // what it allows
  project: null, // the name of the model
  about: null, // what the model is
  key: null,
  running: 0, // requests
};

/** What went wrong, in words for people. */
class Trouble extends Error {
  constructor(words, status = 0, wait = 0) {
    super(words);
    this.status = status;
    this.wait = wait;
  }
}

/** Return the answer to a request: JSON, or the headers of an answer that has none. */
async function ask(path, body, signal) {
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

function wordsFor(status, content) {
  if (status === 401) return "This needs an API key. Whoever runs the server can give you one.";
  if (status === 503) return `The server is busy. ${content?.detail ?? ""}`;
  return content?.detail ?? `The server has answered ${status}, which this page does not understand.`;
}

const v1 = (route, project = state.project) => `/v1/projects/${encodeURIComponent(project)}/${route}`;
const ui = (route, project = state.project) => `/ui/projects/${encodeURIComponent(project)}/${route}`;

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
async function attempt(work, again = work) {
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

function setKey(key) {
  state.key = key;
  memory.set("key", key, "sessionStorage");
}

// ---- text

const desk = {
  text: "", // that the labels are of
  items: [], // the labels, in the order they are shown
  chosen: null, // the label whose reasons are shown
  view: "why",
  threshold: 0.5,
  other: "", // the model to compare with
  verdicts: new Map(), // what was said of labels: {label, verdict: "accepted", "rejected" or "added"}
  marks: [], // words of the text: {start, end, value}, in code units
  marked: "", // the text that the marks are of
  asked: null, // the last request
  welcome: "", // what the model does, for who has not typed anything
};

function currentText() {
  return $("document").value;
}

/** Return what the server takes for a text, which for some models is JSON of features. */
function documentOf(text) {
  if (state.about.takes === "text") return { text };
  try {
    return { features: JSON.parse(text) };
  } catch {
    throw new Trouble('This model takes features, not texts: write [0.2, 0, 1] or {"5": 0.2}.', 400);
  }
}

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
async function suggest(fresh = false) {
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

function acceptDrops(element, use) {
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    element.classList.add("dropping");
  });
  element.addEventListener("dragleave", () => element.classList.remove("dropping"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("dropping");
    const [file] = event.dataTransfer.files;
    if (file) use(file);
  });
}

async function showExamples() {
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
async function writeWelcome() {
  const query = new URLSearchParams({ sort: "count", order: "descending", limit: 4, language: $("language").value });
  const { total, labels } = await ask(`${ui("labels")}?${query}`);
  const some = labels.map((entry) => entry.label).join(", ");
  desk.welcome = `This model gives a text the labels that suit it, out of ${whole(total)}: ${some}, ... They appear here while you type.`;
}

// The words are marked in a copy of the text that lies behind it.

function drawMirror() {
  const text = currentText();
  const pieces = [];
  let end = 0;
  const largest = Math.max(...desk.marks.map((mark) => Math.abs(mark.value)), 1e-9);
  for (const mark of desk.marks) {
    const strength = Math.ceil((3 * Math.abs(mark.value)) / largest);
    if (mark.start < end || Math.abs(mark.value) < largest / 12) continue;
    pieces.push(text.slice(end, mark.start));
    const kind = `${mark.value < 0 ? "against" : "for"} strength-${strength}`;
    pieces.push(make("mark", { class: kind }, text.slice(mark.start, mark.end)));
    end = mark.end;
  }
  $("mirror").replaceChildren(...pieces, `${text.slice(end)}\n`);
  desk.marked = text;
  $("marks-legend").hidden = !desk.marks.length;
}

/** Keep marks at their words while something is typed before or after them. */
function shiftMarks() {
  const before = desk.marked;
  const text = currentText();
  const shorter = Math.min(before.length, text.length);
  let head = 0;
  while (head < shorter && before[head] === text[head]) head++;
  let tail = 0;
  while (tail < shorter - head && before[before.length - 1 - tail] === text[text.length - 1 - tail]) tail++;
  const shift = text.length - before.length;
  desk.marks = desk.marks
    .map((mark) =>
      mark.end <= head
        ? mark
        : mark.start >= before.length - tail
          ? { ...mark, start: mark.start + shift, end: mark.end + shift }
          : null,
    )
    .filter(Boolean);
  drawMirror();
}

/** Return marks in the units of JavaScript's strings; the server counts characters. */
function inCodeUnits(marks, text) {
  const places = [];
  let at = 0;
  for (const character of text) {
    places.push(at);
    at += character.length;
  }
  places.push(at);
  return marks.map((mark) => ({ ...mark, start: places[mark.start], end: places[mark.end] }));
}

// ---- labels

/** Return items sorted by score, where two neighbours that have changed places stay where they were. */
function arrange(items, previous) {
  const score = (item) => Math.max(item.score ?? 0, item.other ?? 0);
  const sorted = items.toSorted((a, b) => score(b) - score(a));
  const place = new Map(previous.map((item, i) => [item.uri, i]));
  for (let i = 0; i + 1 < sorted.length; i++) {
    const swapped = place.get(sorted[i].uri) === i + 1 && place.get(sorted[i + 1].uri) === i;
    if (swapped && isAbove(sorted[i]) === isAbove(sorted[i + 1])) {
      [sorted[i], sorted[i + 1]] = [sorted[i + 1], sorted[i]];
      i++;
    }
  }
  return sorted;
}

const isAbove = (item) => item.score !== null && item.score >= desk.threshold;

function showLabels(items, fresh) {
  desk.items = arrange(items, fresh ? [] : desk.items);
  for (const [uri, { label, verdict }] of desk.verdicts) {
    if (verdict !== "rejected" && !desk.items.some((item) => item.uri === uri)) {
      desk.items.push({ uri, label, notation: null, score: null, other: null });
    }
  }
  drawLabels();
  speakLabels();
}

function drawLabels() {
  const list = $("labels");
  const rows = new Map([...list.children].map((row) => [row.dataset.uri, row]));
  const before = new Map([...rows].map(([uri, row]) => [uri, row.offsetTop]));
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  const kept = new Set(desk.items.map((item) => item.uri));
  for (const [uri, row] of rows) if (!kept.has(uri)) row.remove();
  desk.items.forEach((item, i) => {
    const row = rows.get(item.uri) ?? makeRow(item);
    if (list.children[i] !== row) list.insertBefore(row, list.children[i] ?? null);
    fillRow(row, item);
  });
  if (focused && document.activeElement !== focused && focused.isConnected) focused.focus();
  glide(list, before);
  setStop();
  $("nothing").hidden = desk.items.length > 0;
  $("nothing").textContent = desk.text.trim() ? "The model has no label for this text." : desk.welcome;
  $("controls").hidden = !desk.text.trim();
  $("adding").hidden = !desk.text.trim() || !teaches();
  placeLine();
  drawLesson();
}

/** Let rows move to their new places. */
function glide(list, before) {
  if (!MOVING.matches) return;
  for (const row of list.children) {
    const old = before.get(row.dataset.uri);
    if (old === undefined) row.animate([{ opacity: 0 }, { opacity: 1 }], 200);
    else if (old !== row.offsetTop) {
      row.animate([{ transform: `translateY(${old - row.offsetTop}px)` }, { transform: "none" }], {
        duration: 200,
        easing: "ease-out",
      });
    }
  }
}

function makeRow({ uri }) {
  const choose = () => toggleReasons(uri);
  const judge = (verdict) => () => setVerdict(uri, verdict);
  return make(
    "li",
    { "data-uri": uri },
    make(
      "button",
      { type: "button", class: "label", "aria-controls": "reasons", onclick: choose },
      make("span", { class: "name" }),
      make(
        "span",
        { class: "bars", "aria-hidden": "true" },
        make("span", { class: "bar" }),
        make("span", { class: "bar other" }),
      ),
      make("span", { class: "score" }),
      make("span", { class: "score other" }),
      make("span", { class: "verdict spoken" }),
    ),
    make(
      "span",
      { class: "judge" },
      make("button", { type: "button", class: "plain accept", tabindex: "-1", onclick: judge("accepted") }),
      make("button", { type: "button", class: "plain reject", tabindex: "-1", onclick: judge("rejected") }),
    ),
  );
}

function fillRow(row, item) {
  const [name, bars, score, other, verdict] = row.querySelector(".label").children;
  name.replaceChildren(...breakable(item.notation ? `${item.notation} ${item.label}` : item.label));
  name.title = item.uri;
  bars.children[0].style.transform = `scaleX(${item.score ?? 0})`;
  bars.children[1].style.transform = `scaleX(${item.other ?? 0})`;
  score.textContent = item.score === null ? "–" : two(item.score);
  other.textContent = item.other === null ? "–" : two(item.other);
  const said = desk.verdicts.get(item.uri)?.verdict ?? "";
  verdict.textContent = said;
  row.className = [isAbove(item) || said === "accepted" || said === "added" ? "above" : "below", said].join(" ");
  row.querySelector(".label").setAttribute("aria-expanded", String(item.uri === desk.chosen));
  row.querySelector(".judge").hidden = !teaches();
  fillJudge(row.querySelector(".accept"), item, "✓", said === "rejected" ? "" : said, "accept");
  fillJudge(row.querySelector(".reject"), item, "✗", said === "rejected" ? said : "", "reject");
}

function fillJudge(button, item, sign, said, word) {
  button.textContent = `${sign} ${said || word}`;
  button.setAttribute("aria-pressed", String(said !== ""));
  button.setAttribute("aria-label", `${word} ${item.label}`);
}

function speakLabels() {
  const above = desk.items.filter(isAbove);
  const named = above
    .slice(0, 5)
    .map((item) => `${item.label} ${two(item.score)}`)
    .join(", ");
  if (!desk.text.trim()) speak("");
  else
    speak(
      above.length ? `${plural(above.length, "label")} above the threshold: ${named}` : "No label above the threshold",
    );
}

/** Let the tab key stop at one label of the list: the arrow keys go to the others. */
function setStop(stop = null) {
  const buttons = [...document.querySelectorAll("#labels .label")];
  const at = stop ?? buttons.find((button) => button === document.activeElement) ?? buttons[0];
  for (const button of buttons) button.tabIndex = button === at ? 0 : -1;
}

function onListKey(event) {
  const row = event.target.closest("li");
  if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
  const next = {
    ArrowDown: row.nextElementSibling,
    ArrowUp: row.previousElementSibling,
    Home: row.parentElement.firstElementChild,
    End: row.parentElement.lastElementChild,
  }[event.key];
  const verdict = { a: "accepted", r: "rejected" }[event.key.toLowerCase()];
  if (next) {
    event.preventDefault();
    const button = next.querySelector(".label");
    setStop(button);
    button.focus();
  } else if (verdict && teaches()) {
    event.preventDefault();
    setVerdict(row.dataset.uri, verdict);
  }
}

// The threshold: a line between labels that can be dragged, and a slider.

function setThreshold(value) {
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

function defaultThreshold() {
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

function placeLine(y = null) {
  const rows = [...$("labels").children];
  const first = rows.find((row) => row.classList.contains("below"));
  const end = rows.length ? rows.at(-1).offsetTop + rows.at(-1).offsetHeight : 0;
  $("line").hidden = !rows.length;
  $("line").style.transform = `translateY(${y ?? (first ? first.offsetTop : end)}px)`;
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

// ---- why and how

function toggleReasons(uri) {
  if (desk.chosen === uri) return closeReasons();
  desk.chosen = uri;
  markChosen();
  return attempt(() => showReasons(true));
}

function closeReasons() {
  const back = $("reasons").contains(document.activeElement);
  const row = [...$("labels").children].find((element) => element.dataset.uri === desk.chosen);
  desk.chosen = null;
  stopPlaying();
  $("reasons").hidden = true;
  document.body.classList.remove("sheet-open");
  desk.marks = [];
  drawMirror();
  markChosen();
  if (back) row?.querySelector(".label").focus();
}

function markChosen() {
  for (const row of $("labels").children) {
    row.querySelector(".label").setAttribute("aria-expanded", String(row.dataset.uri === desk.chosen));
    row.classList.toggle("chosen", row.dataset.uri === desk.chosen);
  }
}

/** Fill the panel of reasons for the chosen label; open it, if it is asked for. */
async function showReasons(opening) {
  const item = desk.items.find(({ uri }) => uri === desk.chosen);
  if (!item) return closeReasons();
  const text = desk.text;
  const [why, how] = await Promise.all([
    answerOrReason(v1("explain"), { ...documentOf(text), uri: item.uri, limit: 16, language: $("language").value }),
    desk.view === "how" ? courseOf(text) : null,
  ]);
  if (desk.chosen !== item.uri || desk.text !== text) return undefined;
  $("reasons-title").replaceChildren(
    item.label,
    " ",
    make("span", { class: "number" }, item.score === null ? "" : two(item.score)),
  );
  drawRelated(why);
  drawWhy(why, item);
  if (how) drawHow(how, item);
  desk.marks = why.marks && currentText() === text ? inCodeUnits(why.marks, text) : desk.marks;
  drawMirror();
  markChosen();
  $("why").hidden = desk.view !== "why";
  $("how").hidden = desk.view !== "how";
  $("show-why").setAttribute("aria-pressed", String(desk.view === "why"));
  $("show-how").setAttribute("aria-pressed", String(desk.view === "how"));
  $("reasons").hidden = false;
  document.body.classList.add("sheet-open");
  if (opening && isPhone()) $("reasons").focus();
  else if (opening) $("reasons").scrollIntoView({ block: "nearest", behavior: MOVING.matches ? "smooth" : "auto" });
  return undefined;
}

/** Say how often a label was in training, and what the vocabulary has above and below it. */
function drawRelated({ count, broader = [], narrower = [] }) {
  const seen = typeof count === "number" ? [`${plural(count, "time")} in training`] : [];
  const wider = broader.length ? [`broader: ${list(broader)}`] : [];
  const more = narrower.length > 5 ? `, ${whole(narrower.length - 5)} more` : "";
  const below = narrower.length ? [`narrower: ${list(narrower.slice(0, 5))}${more}`] : [];
  $("reasons-related").textContent = [...seen, ...wider, ...below].join("  ·  ");
}

const isPhone = () => matchMedia("(max-width: 52rem)").matches;

/** Return an answer, or, where the model cannot give one, the words that say so. */
async function answerOrReason(path, body) {
  try {
    return await ask(path, body);
  } catch (error) {
    if (error.status === 409 || error.status === 400) return { reason: error.message };
    throw error;
  }
}

function setView(view) {
  desk.view = view;
  stopPlaying();
  return attempt(() => showReasons(false));
}

// ---- why

function drawWhy(answer, item) {
  if (answer.reason) {
    $("why").replaceChildren(make("p", {}, answer.reason));
    return;
  }
  const parts = [leadOfWhy(answer, item), makeParts(answer)];
  if (answer.ranker) {
    parts.push(
      make("h3", {}, "What the classifier of this label says, one of the judges of refinement"),
      makeParts(answer.ranker),
    );
  }
  $("why").replaceChildren(...parts);
}

function leadOfWhy({ exact, score, probability }, item) {
  const final = probability ?? item.score;
  const words = [
    exact ? "The words of the text add up to " : "The words of the text make about ",
    make("b", {}, score.toFixed(3)),
    ". ",
  ];
  if (final !== null && Math.abs(final - score) >= 0.005) {
    const how =
      probability === null || probability === undefined
        ? "The decoder, which weighs all labels together, makes it "
        : "Refinement makes it ";
    words.push(how, make("b", {}, two(final)), ".");
  }
  if (!exact)
    words.push(" An approximation: each part is what would be lost without the word, so parts need not add up.");
  return make("p", { class: "lead" }, ...words);
}

function makeParts({ parts, rest, constant, score, exact }) {
  const largest = Math.max(...parts.map((part) => Math.abs(part.value)), 1e-9);
  const line = (name, value, kind) => {
    const bar = make("span", { class: "bar" });
    bar.style.width = `${100 * Math.min(1, Math.abs(value) / largest)}%`;
    return make(
      "li",
      { class: `${value < 0 ? "against" : "for"} ${kind}` },
      make("span", { class: "name" }, name),
      make("span", { class: "bars", "aria-hidden": "true" }, bar),
      make("span", { class: "score" }, signed(value)),
    );
  };
  const lines = parts.toSorted((a, b) => b.value - a.value).map((part) => line(part.feature, part.value, "word"));
  if (rest) lines.push(line("all other words", rest, "more"));
  lines.push(line("base", constant, "more"));
  const sum = make("p", { class: "sum" }, exact === false ? "score " : "sum ", make("b", {}, score.toFixed(3)));
  return make(
    "div",
    { class: "equation" },
    make("ul", { class: "parts", "aria-label": "What words add to the score" }, ...lines),
    sum,
  );
}

// ---- how

const MOST_BARS = 512;
const STEP_TIME = 900; // milliseconds a step when playing
const DECODERS = {
  OMPDecoder: "Orthogonal matching pursuit",
  FoBaDecoder: "Forward-backward pursuit",
  CoSaMPDecoder: "CoSaMP",
  LassoDecoder: "The Lasso",
  MultistageLassoDecoder: "The multi-stage Lasso",
  CorrelationDecoder: "Correlation",
  GroupOMPDecoder: "Group matching pursuit",
};
const course = { text: null, project: null, answer: null, step: 0, timer: null, drawn: [], frame: null };

async function courseOf(text) {
  if (course.text !== text || course.project !== state.project) {
    course.answer = await answerOrReason(ui("how"), documentOf(text));
    Object.assign(course, { text, project: state.project, step: course.answer.steps?.length ?? 0, drawn: [] });
  }
  return course.answer;
}

const nameOfDecoder = (name) => DECODERS[name] ?? name.replace(/Decoder$/, "");
const list = (entries) => entries.map((entry) => entry.label).join(", ");

function drawHow(answer, item) {
  if (answer.reason) {
    $("how").replaceChildren(make("p", {}, answer.reason));
    return;
  }
  const m = answer.measurements.length;
  const shown = Math.min(m, MOST_BARS);
  const some = shown < m ? ` The first ${whole(shown)} of them are drawn.` : "";
  $("how").replaceChildren(
    make(
      "p",
      { class: "lead" },
      `The model takes ${whole(m)} measurements of the text.${some} ${nameOfDecoder(answer.decoder)} `,
      "looks for the few labels that explain them: at each step it takes one, and ",
      make("span", { class: "for" }, "what is left"),
      " of the measurements falls.",
    ),
    make("div", { class: "course" }, makeBars(answer, shown), makeSteps(answer, item)),
    makeRefinement(answer, item),
  );
  drawStep(false);
}

function makeBars(answer, shown) {
  const picture = make(
    "svg:svg",
    { viewBox: `0 0 ${shown} 100`, preserveAspectRatio: "none", role: "img", "aria-labelledby": "how-caption" },
    make("svg:path", { class: "ghost", d: barsPath(answer.measurements.slice(0, shown), scaleOf(answer), 0) }),
    make("svg:path", { class: "left for", id: "bars-for" }),
    make("svg:path", { class: "left against", id: "bars-against" }),
  );
  const step = (by) => () => {
    stopPlaying();
    goTo(course.step + by);
  };
  return make(
    "figure",
    {},
    picture,
    make(
      "figcaption",
      { class: "small", id: "how-caption" },
      "Grey: what was measured. In colour: what the labels so far leave unexplained.",
    ),
    make(
      "p",
      { class: "line" },
      make("button", { type: "button", id: "play", onclick: play }, "Play"),
      make("button", { type: "button", id: "step-back", onclick: step(-1) }, "Back"),
      make("button", { type: "button", id: "step-on", onclick: step(1) }, "Step"),
      make("span", { id: "step-words", class: "small", "aria-live": "polite" }),
    ),
  );
}

const scaleOf = (answer) => 48 / Math.max(...answer.measurements.map(Math.abs), 1e-9);

/** Return bars as a path: all of them, or those of one sign. */
function barsPath(values, scale, sign) {
  return values
    .map((value, i) =>
      sign && Math.sign(value) !== sign ? "" : `M${i + 0.12} 50h.76V${(50 - scale * value).toFixed(1)}h-.76z`,
    )
    .join("");
}

function makeSteps(answer, item) {
  const lines = answer.steps.map((step, i) => {
    const coefficient = (uri) => step.coefficients.find((entry) => entry.uri === uri)?.value ?? 0;
    const bar = make("span", { class: "bar" });
    bar.style.transform = `scaleX(${Math.min(1, step.residual)})`;
    const dropped = step.dropped.length ? [make("s", {}, list(step.dropped)), " "] : [];
    const about = step.taken.some(({ uri }) => uri === item.uri) ? "chosen" : "";
    return make(
      "li",
      { class: about, "data-step": i + 1 },
      make("span", { class: "name" }, ...dropped, ...breakable(list(step.taken) || "weighs them anew")),
      make("span", { class: "score" }, step.taken.map(({ uri }) => two(coefficient(uri))).join(", ")),
      make("span", { class: "bars", "aria-hidden": "true" }, bar),
      make("span", { class: "score left" }, `${two(step.residual)} left`),
    );
  });
  return make("ol", { class: "steps", "aria-label": "Steps of the decoder" }, ...lines);
}

function makeRefinement({ refinement, steps }, item) {
  if (!refinement) {
    const last = steps.at(-1)?.coefficients.find(({ uri }) => uri === item.uri);
    const here = last
      ? [`In the end ${item.label} has `, make("b", {}, two(last.value)), ". "]
      : [`${item.label} was not taken. `];
    return make("p", { class: "refinement" }, ...here, "This model has no refinement: the decoder has the last word.");
  }
  const own = refinement.labels.find(({ uri }) => uri === item.uri);
  const shown = refinement.labels.filter(({ before, after }) => Math.max(before, after) >= 0.01).slice(0, 15);
  if (own && !shown.includes(own)) shown.push(own);
  const lines = shown.map((change) => makeChange(change, change === own));
  return make(
    "div",
    { class: "refinement" },
    make("h3", {}, "Then refinement"),
    make(
      "p",
      { class: "lead" },
      "Other judges of the same words have their say about each candidate, and what the decoder ",
      "said becomes a ",
      make("span", { class: "for" }, "probability"),
      ".",
    ),
    own
      ? makeVerdict(own, refinement.candidates)
      : make("p", {}, `${item.label} was not among the ${whole(refinement.candidates)} candidates.`),
    make("ul", { class: "parts", "aria-label": "What refinement changed" }, ...lines),
  );
}

const JUDGES = {
  decoder: "the decoder",
  correlation: "correlation with the measurements",
  "linear decoder": "the linear decoder",
  centroids: "likeness to the texts that have it",
  ranker: "its own classifier",
};

/** Say in words what refinement made of a label, and where its judges place it. */
function makeVerdict({ label, before, after, places }, candidates) {
  const names = Object.keys(places);
  const high = names.filter((name) => places[name] <= 3).length;
  const agreed =
    high === names.length ? "all judges put it" : `${high || "none"} of ${names.length} judges put${high === 1 ? "s" : ""} it`;
  const lines = names.map((name) =>
    make(
      "li",
      {},
      make("span", { class: "name" }, JUDGES[name] ?? name),
      make("b", { class: places[name] <= 3 ? "for" : null }, name === "decoder" && !before ? "not taken" : ordinal(places[name])),
    ),
  );
  return make(
    "div",
    { class: "verdicts" },
    make(
      "p",
      {},
      ...breakable(label),
      ` ${two(before)} → `,
      make("b", { class: "for" }, two(after)),
      `: ${agreed} among the first three of ${whole(candidates)} candidates.`,
    ),
    make("ul", { "aria-label": "Its place by each judge" }, ...lines),
  );
}

function makeChange({ label, before, after }, chosen) {
  const [old, fresh] = [make("span", { class: "bar before" }), make("span", { class: "bar" })];
  old.style.width = `${100 * Math.min(1, Math.max(0, before))}%`;
  fresh.style.width = `${100 * after}%`;
  return make(
    "li",
    { class: chosen ? "change chosen" : "change" },
    make("span", { class: "name" }, ...breakable(label)),
    make("span", { class: "bars", "aria-hidden": "true" }, old, fresh),
    make("span", { class: "score" }, `${two(before)} → `, make("b", {}, two(after))),
  );
}

function goTo(step, moving = true) {
  course.step = Math.min(Math.max(step, 0), course.answer.steps.length);
  drawStep(moving);
}

/** Show the course up to the current step: its lines, and what is left of the measurements. */
function drawStep(moving) {
  const { answer, step } = course;
  for (const line of document.querySelectorAll(".steps li")) {
    line.classList.toggle("ahead", Number(line.dataset.step) > step);
    line.classList.toggle("now", Number(line.dataset.step) === step);
  }
  const left = step ? answer.steps[step - 1].left : answer.measurements;
  moveBars(left.slice(0, MOST_BARS), moving && MOVING.matches);
  const last = answer.steps[step - 1];
  $("step-words").textContent = step
    ? `step ${step} of ${answer.steps.length}: ${list(last.taken) || "weighs them anew"}, ${two(last.residual)} left`
    : "before the first step: all is left";
  $("step-back").disabled = step === 0;
  $("step-on").disabled = step === answer.steps.length;
}

function moveBars(target, moving) {
  cancelAnimationFrame(course.frame);
  const scale = scaleOf(course.answer);
  const from = course.drawn.length === target.length ? course.drawn : target;
  const started = performance.now();
  const draw = (now) => {
    const share = moving ? Math.min(1, Math.max(0, now - started) / 400) : 1;
    const eased = 1 - (1 - share) ** 3;
    course.drawn = target.map((value, i) => from[i] + (value - from[i]) * eased);
    $("bars-for")?.setAttribute("d", barsPath(course.drawn, scale, 1));
    $("bars-against")?.setAttribute("d", barsPath(course.drawn, scale, -1));
    if (share < 1) course.frame = requestAnimationFrame(draw);
  };
  draw(started);
}

function play() {
  if (course.timer) return stopPlaying();
  if (course.step === course.answer.steps.length) goTo(0, false);
  $("play").textContent = "Pause";
  course.timer = setInterval(() => {
    goTo(course.step + 1);
    if (course.step === course.answer.steps.length) stopPlaying();
  }, STEP_TIME);
  return undefined;
}

function stopPlaying() {
  clearInterval(course.timer);
  course.timer = null;
  if ($("play")) $("play").textContent = "Play";
}

// ---- learning

const teaches = () => state.service.learning.includes(state.project);
const lesson = { last: null, completions: [], at: -1 };

function setVerdict(uri, verdict) {
  const item = desk.items.find((entry) => entry.uri === uri);
  const before = desk.verdicts.get(uri)?.verdict;
  const undone = before === verdict || (before === "added" && verdict === "rejected");
  if (undone) desk.verdicts.delete(uri);
  else desk.verdicts.set(uri, { label: item.label, verdict });
  if (undone && before === "added") desk.items = desk.items.filter((entry) => entry !== item);
  $("learned").hidden = true;
  drawLabels();
  speak(undone ? `${item.label}: taken back` : `${item.label} ${verdict}`);
}

/** Return what would be learned: labels above the line that are not rejected, and those that were accepted or added. */
function subjects() {
  return desk.items.filter((item) => {
    const said = desk.verdicts.get(item.uri)?.verdict;
    return said ? said !== "rejected" : isAbove(item);
  });
}

function drawLesson() {
  const shown = teaches() && desk.verdicts.size > 0;
  $("lesson").hidden = !shown;
  if (!shown) return;
  const labels = subjects();
  $("lesson-text").replaceChildren(
    labels.length
      ? `To be learned: this text has ${plural(labels.length, "label")}, `
      : "To be learned: this text has no label.",
    make("b", {}, labels.map((item) => item.label).join(", ")),
    labels.length ? "." : "",
    make("span", { class: "small" }, " Labels above the line count unless you reject them."),
  );
}

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

// ---- batch

const batch = { name: "", documents: [], results: [], done: 0, stopped: true };
const PREVIEW = 100; // results that are shown
const AT_ONCE = 2; // requests
const TEXT_FIELDS = ["title", "body", "description"];

/** Return the rows of a table, with fields in quotes where the format has them. */
function readTable(content, separator) {
  if (separator === "\t")
    return content
      .split(/\r?\n/)
      .filter(Boolean)
      .map((line) => line.split("\t"));
  const rows = [];
  let row = [],
    field = "",
    quoted = false;
  for (let i = 0; i < content.length; i++) {
    const c = content[i];
    if (quoted) {
      if (c !== '"') field += c;
      else if (content[i + 1] === '"') {
        field += '"';
        i++;
      } else quoted = false;
    } else if (c === '"' && field === "") quoted = true;
    else if (c === separator) {
      row.push(field);
      field = "";
    } else if (c === "\n" || c === "\r") {
      if (c === "\r" && content[i + 1] === "\n") i++;
      row.push(field);
      if (row.length > 1 || row[0]) rows.push(row);
      row = [];
      field = "";
    } else field += c;
  }
  if (quoted) throw new Trouble("A field of the file begins with a quote that does not end. Nothing was sent.", 400);
  if (field || row.length) rows.push([...row, field]);
  return rows;
}

function documentFrom(record, place) {
  const parts =
    typeof record.text === "string"
      ? [record.text]
      : TEXT_FIELDS.map((name) => record[name]).filter((part) => typeof part === "string");
  if (record.features !== undefined && state.about.takes === "features")
    return { features: record.features, document_id: nameOf(record) };
  if (!parts.length) throw new Trouble(`${place} has no field "text". Nothing was sent.`, 400);
  return { text: parts.join(" "), document_id: nameOf(record) };
}

function nameOf(record) {
  const name = record.document_id ?? record.id;
  return name === undefined || name === null ? null : String(name);
}

/** Return the documents of a file: JSON lines, TSV or CSV with names in the first line, or TSV with the text first. */
function readDocuments(name, content) {
  const text = content.replace(/^\ufeff/, "");
  if (/\.(tsv|csv)$/i.test(name)) {
    const rows = readTable(text, /\.tsv$/i.test(name) ? "\t" : ",");
    const names = rows[0]?.map((field) => field.trim().toLowerCase()) ?? [];
    if (["text", ...TEXT_FIELDS].some((field) => names.includes(field))) {
      return rows
        .slice(1)
        .map((row, i) => documentFrom(Object.fromEntries(names.map((field, j) => [field, row[j]])), `Row ${i + 2}`));
    }
    if (/\.csv$/i.test(name))
      throw new Trouble('The first line of a CSV file must have the name "text". Nothing was sent.', 400);
    return rows.map(([first]) => ({ text: first, document_id: null }));
  }
  return text.split(/\r?\n/).flatMap((line, i) => {
    if (!line.trim()) return [];
    if (/\.txt$/i.test(name)) return [{ text: line, document_id: null }];
    let record;
    try {
      record = JSON.parse(line);
    } catch {
      record = null;
    }
    if (record === null || typeof record !== "object")
      throw new Trouble(`Line ${i + 1} is not a JSON object. Nothing was sent.`, 400);
    return [documentFrom(record, `Line ${i + 1}`)];
  });
}

/** Return documents in groups that the server takes at once. */
function inGroups(documents) {
  const { batch: most, body } = state.service.limits;
  const groups = [];
  let size = Infinity;
  documents.forEach((document, i) => {
    const bytes = 6 * (document.text?.length ?? JSON.stringify(document.features).length) + 100;
    if (size + bytes > body / 2 || groups.at(-1).length >= most) {
      groups.push([]);
      size = 0;
    }
    groups.at(-1).push(i);
    size += bytes;
  });
  return groups;
}

function runBatch(file) {
  return attempt(
    async () => {
      const documents = readDocuments(file.name, await file.text());
      if (!documents.length) throw new Trouble(`${file.name} has no texts.`, 400);
      const name = file.name.replace(/\.\w+$/, "");
      Object.assign(batch, { name, documents, results: new Array(documents.length), done: 0, stopped: false });
      $("batch-table").tBodies[0].replaceChildren();
      $("batch-run").hidden = false;
      $("batch-save").hidden = true;
      $("batch-stop").hidden = false;
      drawBatch();
      const groups = inGroups(documents);
      const about = {
        limit: Number($("batch-limit").value),
        threshold: Number($("batch-threshold").value),
        language: $("language").value,
      };
      const { project } = state;
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          while (groups.length && !batch.stopped) await predictGroup(groups.shift(), about, project);
        }),
      ).catch((error) => {
        batch.stopped = true;
        throw error;
      });
    },
    () => runBatch(file),
  ).finally(endBatch);
}

async function predictGroup(group, about, project) {
  const documents = group.map((i) => batch.documents[i]);
  for (;;) {
    try {
      const answers = await ask(v1("suggest-batch", project), { ...about, documents });
      answers.forEach(({ results }, j) => {
        batch.results[group[j]] = results;
      });
      batch.done += group.length;
      drawBatch();
      return;
    } catch (error) {
      if (error.status !== 503 || batch.stopped) throw error;
      await pause(1000 * error.wait);
    }
  }
}

function endBatch() {
  batch.stopped = true;
  $("batch-stop").hidden = true;
  $("batch-save").hidden = !batch.done;
  drawBatch();
  if (batch.done) speak($("batch-about").textContent);
}

function drawBatch() {
  const n = batch.documents.length;
  $("batch-progress").max = Math.max(n, 1);
  $("batch-progress").value = batch.done;
  $("batch-about").textContent =
    `${batch.name}: ${whole(batch.done)} of ${plural(n, "text")}${batch.stopped && batch.done < n ? ", stopped" : batch.done === n ? ", done" : ""}`;
  const body = $("batch-table").tBodies[0];
  while (body.rows.length < Math.min(PREVIEW, n) && batch.results[body.rows.length]) {
    const i = body.rows.length;
    const { text, features, document_id: name } = batch.documents[i];
    const labels = batch.results[i].flatMap(({ label, score }, j) => [
      j ? ", " : "",
      label,
      " ",
      make("span", { class: "number" }, two(score)),
    ]);
    body.append(
      make(
        "tr",
        {},
        make(
          "th",
          { scope: "row" },
          make("span", { class: "cut" }, name ?? (text ?? JSON.stringify(features)).slice(0, 200)),
        ),
        make("td", {}, ...(labels.length ? labels : ["none"])),
      ),
    );
  }
  $("batch-more").textContent =
    n > PREVIEW && batch.done ? `The first ${PREVIEW} are shown; the file that you save has all.` : "";
}

function saveBatch(kind) {
  const rows = batch.documents
    .map(({ document_id: name }, i) => ({ name: name ?? String(i + 1), results: batch.results[i] }))
    .filter((row) => row.results);
  if (kind === "jsonl") {
    const lines = rows.map(({ name, results }) =>
      JSON.stringify({
        document_id: name,
        labels: results.map(({ uri }) => uri),
        scores: results.map(({ score }) => Math.round(1e4 * score) / 1e4),
      }),
    );
    download(`${batch.name}-labels.jsonl`, "application/x-ndjson", `${lines.join("\n")}\n`);
    return;
  }
  const quote =
    kind === "csv"
      ? (field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)
      : (field) => field.replace(/[\t\r\n]+/g, " ");
  const table = [
    ["document_id", "uri", "label", "score"],
    ...rows.flatMap(({ name, results }) =>
      results.map(({ uri, label, score }) => [name, uri, label, score.toFixed(4)]),
    ),
  ];
  const lines = table.map((fields) => fields.map(quote).join(kind === "csv" ? "," : "\t"));
  download(
    `${batch.name}-labels.${kind}`,
    kind === "csv" ? "text/csv" : "text/tab-separated-values",
    `${lines.join("\n")}\n`,
  );
}

// ---- model

const table = { query: "", sort: "count", order: "descending", offset: 0, size: 50, total: 0 };
const SORTS = { label: "Label", uri: "URI", count: "In training" }; // columns that the server sorts by
const MEANINGS = {
  "P@1": "of the first labels are right",
  "P@3": "of the first three",
  "P@5": "of the first five",
  F1: "F1 of the labels above the threshold",
  ECE: "calibration error: how far a probability is from what it says",
  recall: "of the right labels are considered at all",
};

function drawModel() {
  const about = state.about;
  const words = about.takes === "text" ? "texts" : "features";
  const seen = about.assignments === null ? "" : `, which it has seen ${whole(about.assignments)} times in training`;
  const scores = about.probabilities
    ? "Its scores are probabilities."
    : "Its scores are not probabilities: they say what comes first, and roughly how sure it is.";
  $("model-title").textContent = about.name;
  $("model-lead").textContent = `It takes ${words} and knows ${plural(about.n_labels, "label")}${seen}. ${scores}`;
  drawChain(about);
  drawExpected(about.report);
  drawFigures(about.report);
  drawDetails(about);
}

function drawChain(about) {
  const plain = (name) =>
    name?.replace(/(Compressor|Learner|Decoder|Classifier)$/, "").replace(/([a-z])([A-Z])/g, "$1 $2");
  const steps = [[whole(about.n_features), about.takes === "text" ? "words" : "features"]];
  if (about.n_measurements !== null) {
    steps.push([whole(about.n_measurements), `measurements, by ${plain(about.learner).toLowerCase()} regression`]);
    steps.push([whole(about.n_labels), `labels, by ${nameOfDecoder(about.decoder).toLowerCase()}`]);
  } else steps.push([whole(about.n_labels), "labels, each by a regression of its own"]);
  if (about.refiner) steps.push(["0–1", "probabilities, by refinement"]);
  $("model-chain").replaceChildren(
    ...steps.map(([number, word]) => make("li", {}, make("b", {}, number), " ", make("span", {}, word))),
  );
}

function drawExpected(report) {
  const expected = report?.expected;
  if (!expected || !Object.keys(expected).length) {
    $("model-expected").replaceChildren(
      make("h2", {}, "What to expect"),
      make(
        "p",
        {},
        "The model does not say: nothing was measured when it was trained. ",
        make("code", {}, "labelsense evaluate"),
        " measures it.",
      ),
    );
    return;
  }
  const figures = Object.keys(MEANINGS)
    .filter((name) => typeof expected[name] === "number")
    .map((name) =>
      make(
        "div",
        {},
        make("dt", {}, name === "F1" ? two(expected[name]) : percent(expected[name])),
        make("dd", {}, MEANINGS[name]),
      ),
    );
  $("model-expected").replaceChildren(
    make("h2", {}, "What to expect"),
    make("dl", { class: "figures" }, ...figures),
    make(
      "p",
      { class: "small" },
      expected.rows ? `Measured on ${whole(expected.rows)} rows that it had not learned from.` : "",
      wordsOfLast(report.expected_last),
    ),
  );
}

/** Say what the last rows got from a model of those before, where that was tried. */
function wordsOfLast(last) {
  if (!last || typeof last["P@1"] !== "number") return "";
  const rows = last.rows ? `${whole(last.rows)} ` : "";
  return ` The last ${rows}rows, by a model of those before them: P@1 ${percent(last["P@1"])}, P@5 ${percent(last["P@5"])}.`;
}

function drawFigures(report) {
  const figures = [];
  if (report?.reliability?.length) figures.push(reliabilityFigure(report.reliability));
  if (report?.curve?.length) figures.push(curveFigure(report.curve));
  if (report?.judges && Object.keys(report.judges).length)
    figures.push(precisionTable("Who judges how well", report.judges, true));
  if (report?.tried?.length)
    figures.push(precisionTable("What was tried", Object.fromEntries(report.tried.map((row) => [row.setting, row]))));
  for (const note of report?.notes ?? []) figures.push(make("p", {}, note));
  $("model-figures").replaceChildren(...figures);
}

const W = 420,
  H = 300,
  LEFT = 44,
  BOTTOM = 40,
  TOP = 10,
  RIGHT = 10;
const atX = (share) => LEFT + share * (W - LEFT - RIGHT);
const atY = (share) => H - BOTTOM - share * (H - BOTTOM - TOP);

function svgText(x, y, anchor, words, more = {}) {
  return make("svg:text", { x, y, "text-anchor": anchor, ...more }, words);
}

function axes(xTicks, xWords, yWords) {
  const parts = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
    make("svg:line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: atY(share), y2: atY(share) }),
    svgText(LEFT - 6, atY(share) + 4, "end", String(100 * share)),
  ]);
  for (const [share, words] of xTicks) parts.push(svgText(atX(share), H - BOTTOM + 16, "middle", words));
  const middle = (H - BOTTOM + TOP) / 2;
  parts.push(svgText(atX(0.5), H - 6, "middle", xWords));
  parts.push(svgText(12, middle, "middle", yWords, { transform: `rotate(-90 12 ${middle})` }));
  return parts;
}

function figure(title, words, parts, head, rows) {
  const cells = (row) =>
    row.map((cell, i) => make(i ? "td" : "th", i ? { class: "number" } : { scope: "row", class: "number" }, cell));
  return make(
    "figure",
    { class: "chart" },
    make("figcaption", {}, make("h2", {}, title), make("p", { class: "small" }, words)),
    make(
      "svg:svg",
      { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}. ${words} The numbers are in the table below.` },
      ...parts,
    ),
    make(
      "details",
      {},
      make("summary", {}, "Numbers"),
      make(
        "div",
        { class: "scroll", role: "region", tabindex: "0", "aria-label": title },
        make(
          "table",
          {},
          make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
          make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells(row)))),
        ),
      ),
    ),
  );
}

function reliabilityFigure(groups) {
  const points = groups.map(([predicted, observed]) => [atX(predicted), atY(observed)]);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => [share, String(100 * share)]);
  return figure(
    "Do probabilities mean what they say?",
    "On the dotted line they do: of the labels with 70 %, 70 % are right.",
    [
      ...axes(ticks, "probability, %", "right, %"),
      make("svg:line", { class: "ideal", x1: atX(0), y1: atY(0), x2: atX(1), y2: atY(1) }),
      make("svg:polyline", { class: "curve", points: points.map((point) => point.join(" ")).join(",") }),
      ...points.map(([cx, cy]) => make("svg:circle", { class: "point", cx, cy, r: 3.5 })),
    ],
    ["probability", "right", "how many"],
    groups.map(([predicted, observed, n]) => [percent(predicted), percent(observed), whole(n)]),
  );
}

function curveFigure(curve) {
  const most = Math.max(...curve.map((row) => row.n_measurements));
  const least = Math.min(...curve.map((row) => row.n_measurements));
  const place = (m) => (most === least ? 0.5 : Math.log(m / least) / Math.log(most / least));
  const names = ["P@1", "P@3", "P@5"].filter((name) => typeof curve[0][name] === "number");
  const lines = names.flatMap((name, i) => {
    const points = curve.map((row) => [atX(place(row.n_measurements)), atY(row[name])]);
    const [x, y] = points.at(-1);
    return [
      make("svg:polyline", { class: `curve curve-${i}`, points: points.map((point) => point.join(" ")).join(",") }),
      ...points.map(([cx, cy]) => make("svg:circle", { class: "point", cx, cy, r: 3 })),
      svgText(x - 2, y - 8, "end", name),
    ];
  });
  const ticks = curve
    .filter((_, i) => curve.length < 8 || i % 2 === 0)
    .map((row) => [place(row.n_measurements), whole(row.n_measurements)]);
  return figure(
    "Accuracy and the number of measurements",
    "More measurements cost more, and gain less and less. From trials on few rows, before refinement.",
    [...axes(ticks, "measurements", "precision, %"), ...lines],
    ["measurements", ...names],
    curve.map((row) => [whole(row.n_measurements), ...names.map((name) => percent(row[name]))]),
  );
}

function precisionTable(title, rows, open = false) {
  const names = ["P@1", "P@3", "P@5"];
  return make(
    "details",
    { open: open ? "" : null },
    make("summary", {}, title),
    make(
      "table",
      {},
      make(
        "thead",
        {},
        make("tr", {}, make("th", { scope: "col" }, ""), ...names.map((name) => make("th", { scope: "col" }, name))),
      ),
      make(
        "tbody",
        {},
        ...Object.entries(rows).map(([name, row]) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, name),
            ...names.map((k) => make("td", { class: "number" }, percent(row[k]))),
          ),
        ),
      ),
    ),
  );
}

function drawDetails(about) {
  const rows = {
    Kind: about.kind,
    Compressor: about.compressor,
    Learner: about.learner,
    Decoder: about.decoder,
    Refiner: about.refiner,
    Threshold: two(about.threshold),
    Changed: new Date(about.modification_time).toLocaleString(),
    Vocabulary: `${plural(about.vocab.size, "label")} in ${about.vocab.languages.join(", ")}`,
    Learning: about.updates
      ? `${plural(about.updates.acknowledged, "update")}, ${whole(about.updates.saved)} in the file`
      : "off",
    Server: `labelsense ${state.service.version}`,
    ...(about.report?.chosen ?? {}),
  };
  $("model-list").replaceChildren(
    ...Object.entries(rows)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))),
  );
}

/** Show a page of the labels, which the server sorts and filters. */
async function drawTable() {
  const { query, sort, order, offset, size } = table;
  const { total, labels } = await ask(
    `${ui("labels")}?${new URLSearchParams({ query, sort, order, offset, limit: size, language: $("language").value })}`,
  );
  if (query !== table.query || offset !== table.offset || sort !== table.sort || order !== table.order) return;
  table.total = total;
  const distinct = labels.some((entry) => entry.uri !== entry.label);
  const columns = Object.keys(SORTS).filter((name) => name !== "uri" || distinct || sort === "uri");
  const related = labels.some((entry) => entry.broader?.length);
  $("table").tHead.rows[0].replaceChildren(
    ...columns.map((name) =>
      make(
        "th",
        { scope: "col", class: name === "count" ? "number" : null, "aria-sort": name === sort ? order : "none" },
        make(
          "button",
          { type: "button", class: "plain", "data-sort": name, onclick: () => sortBy(name) },
          `${SORTS[name]}${name === sort ? (order === "ascending" ? " ↑" : " ↓") : ""}`,
        ),
      ),
    ),
    ...(related ? [make("th", { scope: "col" }, "Broader")] : []),
  );
  $("table").tBodies[0].replaceChildren(
    ...labels.map((entry) =>
      make(
        "tr",
        {},
        ...columns.map((name) =>
          name === "label"
            ? make("th", { scope: "row" }, entry.notation ? `${entry.notation} ${entry.label}` : entry.label)
            : make(
                "td",
                { class: name === "count" ? "number" : null },
                name === "count" ? (entry.count === null ? "–" : whole(entry.count)) : entry.uri,
              ),
        ),
        ...(related ? [make("td", {}, list(entry.broader ?? []))] : []),
      ),
    ),
  );
  $("table-count").textContent = query ? `${plural(total, "label")} with “${query}”` : plural(total, "label");
  $("table-place").textContent = total
    ? `${whole(offset + 1)} to ${whole(offset + labels.length)} of ${whole(total)}`
    : "";
  $("table-back").disabled = offset === 0;
  $("table-next").disabled = offset + labels.length >= total;
  $("table-pages").hidden = total <= size;
}

function sortBy(name) {
  const turned = { ascending: "descending", descending: "ascending" }[table.order];
  table.order = name === table.sort ? turned : name === "count" ? "descending" : "ascending";
  table.sort = name;
  return turnTo(0).then(() => document.querySelector(`[data-sort="${name}"]`)?.focus());
}

function turnTo(offset) {
  table.offset = Math.max(0, offset);
  return attempt(drawTable);
}

function showModel() {
  return attempt(async () => {
    state.about = await ask(ui("model"));
    drawModel();
    await drawTable();
  });
}

// ---- start

async function chooseProject(name) {
  state.about = await ask(ui("model", name));
  state.project = name;
  memory.set("project", name);
  $("project").value = name;
  const { languages } = state.about.vocab;
  $("language").replaceChildren(...languages.map((language) => make("option", {}, language)));
  $("language").disabled = languages.length < 2;
  $("language-field").hidden = languages.length < 2;
  desk.other = "";
  $("compare").replaceChildren(
    make("option", { value: "" }, "no other"),
    ...state.service.projects.filter((other) => other !== name).map((other) => make("option", {}, other)),
  );
  $("compare-field").hidden = state.service.projects.length < 2;
  showComparison();
  desk.verdicts.clear();
  $("learned").hidden = true;
  closeReasons();
  $("document").placeholder =
    state.about.takes === "text"
      ? "Type or paste a text, or drop a file here."
      : 'Features as JSON: [0.2, 0, 1] or {"5": 0.2}';
  document.body.classList.toggle("teaching", teaches());
  $("labels-keys").textContent =
    `Up and down move between labels, Enter tells why.${teaches() ? " A accepts a label, R rejects it." : ""}`;
  setThreshold(defaultThreshold());
  $("batch-threshold").value = desk.threshold;
  $("batch-threshold-value").textContent = two(desk.threshold);
  Object.assign(table, { query: "", sort: "count", order: "descending", offset: 0 });
  $("table-query").value = "";
  await Promise.all([showExamples(), writeWelcome()]);
  await suggest(true);
  if (currentView() === "model") await showModel();
}

function showComparison() {
  document.body.classList.toggle("comparing", desk.other !== "");
  $("legend").hidden = !desk.other;
  $("legend").replaceChildren(
    make("span", { class: "for" }, `■ ${state.project}`),
    " ",
    make("span", { class: "against" }, `■ ${desk.other}`),
  );
}

const VIEWS = ["text", "batch", "model"];
const currentView = () => VIEWS.find((name) => location.hash === `#${name}`) ?? "text";

function showView() {
  const view = currentView();
  for (const name of VIEWS) {
    $(`view-${name}`).hidden = name !== view;
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (name === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = view === "text" ? "labelsense" : `labelsense: ${view}`;
  $("trouble").hidden = true;
  scrollTo(0, 0);
  if (view === "model" && state.project) showModel();
  if (view === "text" && state.project) drawLabels();
}

function listen() {
  const on = (id, kind, use) => $(id).addEventListener(kind, use);
  const slider = (id, use) => on(id, "input", () => use(Number($(id).value)));
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
  on("labels", "keydown", onListKey);
  on("labels", "focusin", (event) => {
    if (event.target.matches(".label")) setStop(event.target);
  });
  on("line", "pointerdown", dragLine);
  slider("threshold", (value) => {
    setThreshold(value);
    speakLabels();
  });
  slider("limit", (value) => {
    $("limit-value").textContent = value;
    clearTimeout(onTyped.timer);
    onTyped.timer = setTimeout(() => suggest(), WAIT_AFTER_KEY);
  });
  slider("batch-limit", (value) => {
    $("batch-limit-value").textContent = value;
  });
  slider("batch-threshold", (value) => {
    $("batch-threshold-value").textContent = two(value);
  });
  on("copy", "click", copyLabels);
  on("save", "click", saveLabels);
  on("compare", "change", () => {
    desk.other = $("compare").value;
    showComparison();
    suggest(true);
  });
  on("language", "change", () => {
    suggest(true);
    turnTo(0);
  });
  on("project", "change", () => attempt(() => chooseProject($("project").value)));
  on("show-why", "click", () => setView("why"));
  on("show-how", "click", () => setView("how"));
  on("reasons-close", "click", closeReasons);
  on("add", "input", () => attempt(complete));
  on("add", "keydown", onAddKey);
  on("add", "blur", closeCompletions);
  on("learn", "click", learn);
  on("forget", "click", forget);
  on("lesson-clear", "click", () => {
    desk.verdicts.clear();
    suggest();
  });
  on("batch-open", "click", () => $("batch-file").click());
  on("batch-file", "change", () => {
    if ($("batch-file").files[0]) runBatch($("batch-file").files[0]);
    $("batch-file").value = "";
  });
  acceptDrops($("batch-drop"), runBatch);
  on("batch-stop", "click", () => {
    batch.stopped = true;
  });
  on("batch-save", "click", (event) => {
    if (event.target.dataset.as) saveBatch(event.target.dataset.as);
  });
  on("table-query", "input", () => {
    table.query = $("table-query").value.trim();
    turnTo(0);
  });
  on("table-back", "click", () => turnTo(table.offset - table.size));
  on("table-next", "click", () => turnTo(table.offset + table.size));
  on("help-open", "click", () => $("help").showModal());
  on("theme", "click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    memory.set("theme", document.documentElement.dataset.theme);
    nameTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (!memory.get("theme")) {
      setTheme(system());
      nameTheme();
    }
  });
  document.querySelector(".skip").addEventListener("click", () => setTimeout(() => $("document").focus()));
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !$("help").open && desk.chosen && $("completions").hidden) closeReasons();
  });
  new ResizeObserver(() => placeLine()).observe($("labels"));
  addEventListener("hashchange", showView);
}

function nameTheme() {
  $("theme").textContent = document.documentElement.dataset.theme === "dark" ? "Light" : "Dark";
}

/** Take the key from the address, which is never sent to the server, and out of it. */
function takeKey() {
  const given = /^#key=(.+)$/.exec(location.hash);
  if (given) {
    setKey(decodeURIComponent(given[1]));
    history.replaceState(null, "", location.pathname);
  } else state.key = memory.get("key", "sessionStorage");
}

function start() {
  takeKey();
  nameTheme();
  listen();
  showView();
  $("document").value = memory.get("text") ?? "";
  $("clear").hidden = !currentText();
  drawMirror();
  if (matchMedia("(pointer: fine)").matches && currentView() === "text") $("document").focus();
  return attempt(async () => {
    state.service = await ask("/ui/service");
    const { projects } = state.service;
    $("project").replaceChildren(...projects.map((name) => make("option", {}, name)));
    const before = memory.get("project");
    await chooseProject(projects.includes(before) ? before : projects[0]);
  });
}

document.addEventListener("DOMContentLoaded", start);
