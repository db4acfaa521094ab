// The panel of reasons for the chosen label: why and how.

import { currentText, desk, documentOf } from "./desk.js";
import { $, list, make, MOVING, on, plural, two, whole } from "./helpers.js";
import { courseOf, drawHow, stopPlaying } from "./how.js";
import { drawMirror, inCodeUnits } from "./mirror.js";
import { answerOrReason, attempt, v1 } from "./server.js";
import { drawWhy } from "./why.js";

export function toggleReasons(uri) {
  if (desk.chosen === uri) return closeReasons();
  desk.chosen = uri;
  markChosen();
  return attempt(() => showReasons(true));
}

export function closeReasons() {
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
export async function showReasons(opening) {
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

function setView(view) {
  desk.view = view;
  stopPlaying();
  return attempt(() => showReasons(false));
}

export function listenToReasons() {
  on("show-why", "click", () => setView("why"));
  on("show-how", "click", () => setView("how"));
  on("reasons-close", "click", closeReasons);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !$("help").open && desk.chosen && $("completions").hidden) closeReasons();
  });
}
