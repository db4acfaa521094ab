// The words of the text that speak for a label or against it. They are marked in a copy that lies behind the text.

import { currentText, desk } from "./desk.js";
import { $, make } from "./helpers.js";

export function drawMirror() {
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
export function shiftMarks() {
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
export function inCodeUnits(marks, text) {
  const places = [];
  let at = 0;
  for (const character of text) {
    places.push(at);
    at += character.length;
  }
  places.push(at);
  return marks.map((mark) => ({ ...mark, start: places[mark.start], end: places[mark.end] }));
}
