// The desk: a text and its labels, which all parts of the view Text share.

import { $ } from "./helpers.js";
import { state, Trouble } from "./server.js";

export const desk = {
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

export const isAbove = (item) => item.score !== null && item.score >= desk.threshold;

export function currentText() {
  return $("document").value;
}

/** Return what the server takes for a text, which for some models is JSON of features. */
export function documentOf(text) {
  if (state.about.takes === "text") return { text };
  try {
    return { features: JSON.parse(text) };
  } catch {
    throw new Trouble('This model takes features, not texts: write [0.2, 0, 1] or {"5": 0.2}.', 400);
  }
}
