// What refinement made of the labels that the decoder found, and where each judge places the chosen one.

import { breakable, make, ordinal, two, whole } from "./helpers.js";

const JUDGES = {
  decoder: "the decoder",
  correlation: "correlation with the measurements",
  "linear decoder": "the linear decoder",
  centroids: "likeness to the texts that have it",
  "rows with similar features": "the texts most like this one",
  "rows with similar measurements": "the texts with the most similar measurements",
  ranker: "its own classifier",
};

export function makeRefinement({ refinement, steps }, item) {
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
