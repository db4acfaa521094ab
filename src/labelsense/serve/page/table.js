// The table of labels in the view Model, a page at a time.

import { $, list, make, on, plural, whole } from "./helpers.js";
import { ask, attempt, ui } from "./server.js";

export const table = { query: "", sort: "count", order: "descending", offset: 0, size: 50, total: 0 };
const SORTS = { label: "Label", uri: "URI", count: "In training" }; // columns that the server sorts by

/** Show a page of the labels, which the server sorts and filters. */
export async function drawTable() {
  const { query, sort, order, offset, size } = table;
  const { total, labels } = await ask(
    `${ui("labels")}?${new URLSearchParams({ query, sort, order, offset, limit: size, language: $("language").value })}`,
  );
  if (query !== table.query || offset !== table.offset || sort !== table.sort || order !== table.order) return;
  table.total = total;
  const distinct = labels.some((entry) => entry.uri !== entry.label);
  const columns = Object.keys(SORTS).filter((name) => name !== "uri" || distinct || sort === "uri");
  const related = labels.some((entry) => entry.broader?.length);
  $("table").tHead.rows[0].replaceChildren(
    ...columns.map((name) =>
      make(
        "th",
        { scope: "col", class: name === "count" ? "number" : null, "aria-sort": name === sort ? order : "none" },
        make(
          "button",
          { type: "button", class: "plain", "data-sort": name, onclick: () => sortBy(name) },
          `${SORTS[name]}${name === sort ? (order === "ascending" ? " ↑" : " ↓") : ""}`,
        ),
      ),
    ),
    ...(related ? [make("th", { scope: "col" }, "Broader")] : []),
  );
  $("table").tBodies[0].replaceChildren(
    ...labels.map((entry) =>
      make(
        "tr",
        {},
        ...columns.map((name) =>
          name === "label"
            ? make("th", { scope: "row" }, entry.notation ? `${entry.notation} ${entry.label}` : entry.label)
            : make(
                "td",
                { class: name === "count" ? "number" : null },
                name === "count" ? (entry.count === null ? "–" : whole(entry.count)) : entry.uri,
              ),
        ),
        ...(related ? [make("td", {}, list(entry.broader ?? []))] : []),
      ),
    ),
  );
  $("table-count").textContent = query ? `${plural(total, "label")} with “${query}”` : plural(total, "label");
  $("table-place").textContent = total
    ? `${whole(offset + 1)} to ${whole(offset + labels.length)} of ${whole(total)}`
    : "";
  $("table-back").disabled = offset === 0;
  $("table-next").disabled = offset + labels.length >= total;
  $("table-pages").hidden = total <= size;
}

function sortBy(name) {
  const turned = { ascending: "descending", descending: "ascending" }[table.order];
  table.order = name === table.sort ? turned : name === "count" ? "descending" : "ascending";
  table.sort = name;
  return turnTo(0).then(() => document.querySelector(`[data-sort="${name}"]`)?.focus());
}

export function turnTo(offset) {
  table.offset = Math.max(0, offset);
  return attempt(drawTable);
}

export function listenToTable() {
  on("table-query", "input", () => {
    table.query = $("table-query").value.trim();
    turnTo(0);
  });
  on("table-back", "click", () => turnTo(table.offset - table.size));
  on("table-next", "click", () => turnTo(table.offset + table.size));
}
