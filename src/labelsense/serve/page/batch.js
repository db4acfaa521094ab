// The view Batch: labels for every text of a file, in groups that the server takes at once, and the files to save.

import { readDocuments } from "./documents.js";
import { $, acceptDrops, download, make, on, pause, plural, slider, speak, two, whole } from "./helpers.js";
import { ask, attempt, state, Trouble, v1 } from "./server.js";

const batch = { name: "", documents: [], results: [], done: 0, stopped: true };
const PREVIEW = 100; // results that are shown
const AT_ONCE = 2; // requests

/** Return documents in groups that the server takes at once. */
function inGroups(documents) {
  const { batch: most, body } = state.service.limits;
  const groups = [];
  let size = Infinity;
  documents.forEach((document, i) => {
    const bytes = 6 * (document.text?.length ?? JSON.stringify(document.features).length) + 100;
    if (size + bytes > body / 2 || groups.at(-1).length >= most) {
      groups.push([]);
      size = 0;
    }
    groups.at(-1).push(i);
    size += bytes;
  });
  return groups;
}

function runBatch(file) {
  return attempt(
    async () => {
      const documents = readDocuments(file.name, await file.text());
      if (!documents.length) throw new Trouble(`${file.name} has no texts.`, 400);
      const name = file.name.replace(/\.\w+$/, "");
      Object.assign(batch, { name, documents, results: new Array(documents.length), done: 0, stopped: false });
      $("batch-table").tBodies[0].replaceChildren();
      $("batch-run").hidden = false;
      $("batch-save").hidden = true;
      $("batch-stop").hidden = false;
      drawBatch();
      const groups = inGroups(documents);
      const about = {
        limit: Number($("batch-limit").value),
        threshold: Number($("batch-threshold").value),
        language: $("language").value,
      };
      const { project } = state;
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          while (groups.length && !batch.stopped) await predictGroup(groups.shift(), about, project);
        }),
      ).catch((error) => {
        batch.stopped = true;
        throw error;
      });
    },
    () => runBatch(file),
  ).finally(endBatch);
}

async function predictGroup(group, about, project) {
  const documents = group.map((i) => batch.documents[i]);
  for (;;) {
    try {
      const answers = await ask(v1("suggest-batch", project), { ...about, documents });
      answers.forEach(({ results }, j) => {
        batch.results[group[j]] = results;
      });
      batch.done += group.length;
      drawBatch();
      return;
    } catch (error) {
      if (error.status !== 503 || batch.stopped) throw error;
      await pause(1000 * error.wait);
    }
  }
}

function endBatch() {
  batch.stopped = true;
  $("batch-stop").hidden = true;
  $("batch-save").hidden = !batch.done;
  drawBatch();
  if (batch.done) speak($("batch-about").textContent);
}

function drawBatch() {
  const n = batch.documents.length;
  $("batch-progress").max = Math.max(n, 1);
  $("batch-progress").value = batch.done;
  $("batch-about").textContent =
    `${batch.name}: ${whole(batch.done)} of ${plural(n, "text")}${batch.stopped && batch.done < n ? ", stopped" : batch.done === n ? ", done" : ""}`;
  const body = $("batch-table").tBodies[0];
  while (body.rows.length < Math.min(PREVIEW, n) && batch.results[body.rows.length]) {
    const i = body.rows.length;
    const { text, features, document_id: name } = batch.documents[i];
    const labels = batch.results[i].flatMap(({ label, score }, j) => [
      j ? ", " : "",
      label,
      " ",
      make("span", { class: "number" }, two(score)),
    ]);
    body.append(
      make(
        "tr",
        {},
        make(
          "th",
          { scope: "row" },
          make("span", { class: "cut" }, name ?? (text ?? JSON.stringify(features)).slice(0, 200)),
        ),
        make("td", {}, ...(labels.length ? labels : ["none"])),
      ),
    );
  }
  $("batch-more").textContent =
    n > PREVIEW && batch.done ? `The first ${PREVIEW} are shown; the file that you save has all.` : "";
}

function saveBatch(kind) {
  const rows = batch.documents
    .map(({ document_id: name }, i) => ({ name: name ?? String(i + 1), results: batch.results[i] }))
    .filter((row) => row.results);
  if (kind === "jsonl") {
    const lines = rows.map(({ name, results }) =>
      JSON.stringify({
        document_id: name,
        labels: results.map(({ uri }) => uri),
        scores: results.map(({ score }) => Math.round(1e4 * score) / 1e4),
      }),
    );
    download(`${batch.name}-labels.jsonl`, "application/x-ndjson", `${lines.join("\n")}\n`);
    return;
  }
  const quote =
    kind === "csv"
      ? (field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)
      : (field) => field.replace(/[\t\r\n]+/g, " ");
  const table = [
    ["document_id", "uri", "label", "score"],
    ...rows.flatMap(({ name, results }) =>
      results.map(({ uri, label, score }) => [name, uri, label, score.toFixed(4)]),
    ),
  ];
  const lines = table.map((fields) => fields.map(quote).join(kind === "csv" ? "," : "\t"));
  download(
    `${batch.name}-labels.${kind}`,
    kind === "csv" ? "text/csv" : "text/tab-separated-values",
    `${lines.join("\n")}\n`,
  );
}

export function listenToBatch() {
  slider("batch-limit", (value) => {
    $("batch-limit-value").textContent = value;
  });
  slider("batch-threshold", (value) => {
    $("batch-threshold-value").textContent = two(value);
  });
  on("batch-open", "click", () => $("batch-file").click());
  on("batch-file", "change", () => {
    if ($("batch-file").files[0]) runBatch($("batch-file").files[0]);
    $("batch-file").value = "";
  });
  acceptDrops($("batch-drop"), runBatch);
  on("batch-stop", "click", () => {
    batch.stopped = true;
  });
  on("batch-save", "click", (event) => {
    if (event.target.dataset.as) saveBatch(event.target.dataset.as);
  });
}
