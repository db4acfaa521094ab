// The figures of the view Model, drawn in SVG, each with a table of its numbers.

import { make, percent, whole } from "./helpers.js";

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

export function reliabilityFigure(groups) {
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

export function curveFigure(curve) {
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

export function precisionTable(title, rows, open = false) {
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
