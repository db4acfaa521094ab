// The documents of a file for the view Batch: JSON lines, TSV, CSV, or a text a line.

import { state, Trouble } from "./server.js";

const TEXT_FIELDS = ["title", "body", "description"];

/** Return the documents of a file: JSON lines, TSV or CSV with names in the first line, or TSV with the text first. */
export function readDocuments(name, content) {
  const text = content.replace(/^\ufeff/, "");
  if (/\.(tsv|csv)$/i.test(name)) {
    const rows = readTable(text, /\.tsv$/i.test(name) ? "\t" : ",");
    const names = rows[0]?.map((field) => field.trim().toLowerCase()) ?? [];
    if (["text", ...TEXT_FIELDS].some((field) => names.includes(field))) {
      return rows
        .slice(1)
        .map((row, i) => documentFrom(Object.fromEntries(names.map((field, j) => [field, row[j]])), `Row ${i + 2}`));
    }
    if (/\.csv$/i.test(name))
      throw new Trouble('The first line of a CSV file must have the name "text". Nothing was sent.', 400);
    return rows.map(([first]) => ({ text: first, document_id: null }));
  }
  return text.split(/\r?\n/).flatMap((line, i) => {
    if (!line.trim()) return [];
    if (/\.txt$/i.test(name)) return [{ text: line, document_id: null }];
    let record;
    try {
      record = JSON.parse(line);
    } catch {
      record = null;
    }
    if (record === null || typeof record !== "object")
      throw new Trouble(`Line ${i + 1} is not a JSON object. Nothing was sent.`, 400);
    return [documentFrom(record, `Line ${i + 1}`)];
  });
}

/** Return the rows of a table, with fields in quotes where the format has them. */
function readTable(content, separator) {
  if (separator === "\t")
    return content
      .split(/\r?\n/)
      .filter(Boolean)
      .map((line) => line.split("\t"));
  const rows = [];
  let row = [],
    field = "",
    quoted = false;
  for (let i = 0; i < content.length; i++) {
    const c = content[i];
    if (quoted) {
      if (c !== '"') field += c;
      else if (content[i + 1] === '"') {
        field += '"';
        i++;
      } else quoted = false;
    } else if (c === '"' && field === "") quoted = true;
    else if (c === separator) {
      row.push(field);
      field = "";
    } else if (c === "\n" || c === "\r") {
      if (c === "\r" && content[i + 1] === "\n") i++;
      row.push(field);
      if (row.length > 1 || row[0]) rows.push(row);
      row = [];
      field = "";
    } else field += c;
  }
  if (quoted) throw new Trouble("A field of the file begins with a quote that does not end. Nothing was sent.", 400);
  if (field || row.length) rows.push([...row, field]);
  return rows;
}

function documentFrom(record, place) {
  const parts =
    typeof record.text === "string"
      ? [record.text]
      : TEXT_FIELDS.map((name) => record[name]).filter((part) => typeof part === "string");
  if (record.features !== undefined && state.about.takes === "features")
    return { features: record.features, document_id: nameOf(record) };
  if (!parts.length) throw new Trouble(`${place} has no field "text". Nothing was sent.`, 400);
  return { text: parts.join(" "), document_id: nameOf(record) };
}

function nameOf(record) {
  const name = record.document_id ?? record.id;
  return name === undefined || name === null ? null : String(name);
}
