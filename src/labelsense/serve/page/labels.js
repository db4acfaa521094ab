// The list of labels: its rows and bars, the keys that move in it, and labels that are accepted or rejected.

import { desk, isAbove } from "./desk.js";
import { $, breakable, make, MOVING, on, plural, speak, two } from "./helpers.js";
import { toggleReasons } from "./reasons.js";
import { teaches } from "./server.js";

/** Return items sorted by score, where two neighbours that have changed places stay where they were. */
export function arrange(items, previous) {
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

export function showLabels(items, fresh) {
  desk.items = arrange(items, fresh ? [] : desk.items);
  for (const [uri, { label, verdict }] of desk.verdicts) {
    if (verdict !== "rejected" && !desk.items.some((item) => item.uri === uri)) {
      desk.items.push({ uri, label, notation: null, score: null, other: null });
    }
  }
  drawLabels();
  speakLabels();
}

export function drawLabels() {
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

export function fillRow(row, item) {
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

export function placeLine(y = null) {
  const rows = [...$("labels").children];
  const first = rows.find((row) => row.classList.contains("below"));
  const end = rows.length ? rows.at(-1).offsetTop + rows.at(-1).offsetHeight : 0;
  $("line").hidden = !rows.length;
  $("line").style.transform = `translateY(${y ?? (first ? first.offsetTop : end)}px)`;
}

export function speakLabels() {
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

// Labels that are accepted or rejected, and what would be learned of them.

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
export function subjects() {
  return desk.items.filter((item) => {
    const said = desk.verdicts.get(item.uri)?.verdict;
    return said ? said !== "rejected" : isAbove(item);
  });
}

export function drawLesson() {
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

export function listenToLabels() {
  on("labels", "keydown", onListKey);
  on("labels", "focusin", (event) => {
    if (event.target.matches(".label")) setStop(event.target);
  });
  new ResizeObserver(() => placeLine()).observe($("labels"));
}
