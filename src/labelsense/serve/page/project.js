// The choice of a model, of the language of its labels, and of another model to compare it with.

import { desk } from "./desk.js";
import { $, make, memory, on, two } from "./helpers.js";
import { showModel } from "./model.js";
import { closeReasons } from "./reasons.js";
import { ask, attempt, state, teaches, ui } from "./server.js";
import { table, turnTo } from "./table.js";
import { showExamples, suggest, writeWelcome } from "./text.js";
import { defaultThreshold, setThreshold } from "./threshold.js";
import { currentView } from "./views.js";

export async function chooseProject(name) {
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

export function listenToProject() {
  on("project", "change", () => attempt(() => chooseProject($("project").value)));
  on("language", "change", () => {
    suggest(true);
    turnTo(0);
  });
  on("compare", "change", () => {
    desk.other = $("compare").value;
    showComparison();
    suggest(true);
  });
}
