// What all parts of the page use: elements, words for numbers, what the browser remembers, speech, files.

const WAIT_TO_SPEAK = 1000; // milliseconds until a screen reader is told
export const MOVING = matchMedia("(prefers-reduced-motion: no-preference)");
const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);
export const two = (number) => number.toFixed(2);
export const whole = (number) => number.toLocaleString("en");
export const percent = (share) => `${(100 * share).toFixed(1)} %`;
export const signed = (number) => `${number <= -0.0005 ? "−" : "+"}${Math.abs(number).toFixed(3)}`;
export const plural = (number, word) => `${whole(number)} ${word}${number === 1 ? "" : "s"}`;
export const ordinal = (n) =>
  `${whole(n)}${n % 100 > 10 && n % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th")}`;
export const list = (entries) => entries.map((entry) => entry.label).join(", ");
export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Return an element with attributes (those that begin with "on" are listeners, null leaves one out) and children. */
export function make(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Return the name of a label in pieces between which a line may break: behind colons, slashes, hyphens and the like. */
export function breakable(name) {
  return name.split(/(?<=[:/_.-])(?=[^:/_.-])/).flatMap((piece, i) => (i ? [make("wbr"), piece] : [piece]));
}

/** Listen to an element, and to a slider, by their ids. */
export const on = (id, kind, use) => $(id).addEventListener(kind, use);
export const slider = (id, use) => on(id, "input", () => use(Number($(id).value)));

export function acceptDrops(element, use) {
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

/** What this browser remembers; nothing, where it may not. */
export const memory = {
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

export function speak(text) {
  clearTimeout(speak.timer);
  speak.timer = setTimeout(() => {
    $("status").textContent = text;
  }, WAIT_TO_SPEAK);
}

export function download(name, type, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
