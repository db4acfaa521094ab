// Why a text has a label: what each of its words adds to the score.

import { $, make, signed, two } from "./helpers.js";

export function drawWhy(answer, item) {
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
