// The view Model: what the model is, and what to expect of it.

import { curveFigure, precisionTable, reliabilityFigure } from "./figures.js";
import { $, make, percent, plural, two, whole } from "./helpers.js";
import { nameOfDecoder } from "./how.js";
import { ask, attempt, state, ui } from "./server.js";
import { drawTable } from "./table.js";

const MEANINGS = {
  "P@1": "of the first labels are right",
  "P@3": "of the first three",
  "P@5": "of the first five",
  F1: "F1 of the labels above the threshold",
  ECE: "calibration error: how far a probability is from what it says",
  recall: "of the right labels are considered at all",
};

export function showModel() {
  return attempt(async () => {
    state.about = await ask(ui("model"));
    drawModel();
    await drawTable();
  });
}

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
