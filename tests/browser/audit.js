// What keeps people out, found in the page as it is now: a list of words, empty where nothing is wrong.
() => {
  const wrong = [];
  const shown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const all = (selector) => [...document.querySelectorAll(selector)].filter(shown);
  const tell = (element) => `${element.tagName.toLowerCase()}#${element.id}.${element.getAttribute("class") ?? ""}`;
  const spoken = (element) => element.closest(".spoken") !== null;

  // Names: whatever can be used has one.
  const nameOf = (element) => {
    const by = (element.getAttribute("aria-labelledby") ?? "").split(/\s+/).filter(Boolean);
    return (
      [
        element.getAttribute("aria-label"),
        ...by.map((id) => document.getElementById(id)?.textContent),
        ...[...(element.labels ?? [])].map((label) => label.textContent),
        element.textContent,
      ].find((name) => name?.trim()) ?? ""
    );
  };
  for (const element of all(
    "button, a[href], input, select, textarea, summary, [role=listbox], [role=img], dialog, nav, progress, [tabindex='0']",
  )) {
    const own = element.matches("input, select, textarea, progress");
    const name = own
      ? nameOf({ getAttribute: (key) => element.getAttribute(key), labels: element.labels, textContent: "" })
      : nameOf(element);
    if (!name.trim()) wrong.push(`no name: ${tell(element)}`);
  }

  // References and numbers: ids are there, and each once.
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`twice: #${id}`);
  for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls", "aria-activedescendant", "for"]) {
    for (const element of document.querySelectorAll(`[${attribute}]`)) {
      for (const id of element.getAttribute(attribute).split(/\s+/))
        if (!ids.includes(id)) wrong.push(`${attribute} of ${tell(element)}: no #${id}`);
    }
  }

  // Structure.
  if (!document.documentElement.lang) wrong.push("no language");
  if (!document.title) wrong.push("no title");
  if (all("main").length !== 1) wrong.push("not one main");
  if (all("h1").length !== 1) wrong.push(`${all("h1").length} h1`);
  let level = 0;
  for (const heading of all("h1, h2, h3, h4")) {
    if (Number(heading.tagName[1]) > level + 1) wrong.push(`heading leaps: ${heading.textContent}`);
    level = Number(heading.tagName[1]);
  }
  for (const list of all("ul:not([role]), ol")) {
    for (const child of list.children) if (child.tagName !== "LI") wrong.push(`${tell(child)} in a list`);
  }
  for (const element of document.querySelectorAll("[aria-hidden=true]")) {
    if (element.querySelector("a[href], button, input, select, textarea, [tabindex]"))
      wrong.push(`hidden from some: ${tell(element)}`);
  }
  for (const table of all("table")) {
    for (const cell of table.querySelectorAll("thead th"))
      if (cell.scope !== "col") wrong.push(`a column without scope in ${tell(table)}`);
  }

  // Contrast: 4.5 for words, 3 for large ones and for the borders of controls.
  const parse = (colour) => {
    const parts = colour.match(/[\d.]+/g).map(Number);
    return colour.startsWith("color(srgb")
      ? [255 * parts[0], 255 * parts[1], 255 * parts[2], parts[3] ?? 1]
      : [parts[0], parts[1], parts[2], parts[3] ?? 1];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[3] * top[i] + (1 - top[3]) * below[i]);
  const paperOf = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const luminance = (rgb) =>
    rgb
      .map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) =>
    (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (
      !walker.currentNode.data.trim() ||
      seen.has(element) ||
      !shown(element) ||
      spoken(element) ||
      element.closest("#mirror, option, .skip")
    )
      continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const paper = paperOf(element);
    const ink = over(parse(element.namespaceURI.endsWith("svg") ? style.fill : style.color), paper);
    const disabled = element.closest(":disabled");
    const large = parseFloat(style.fontSize) >= 24;
    if (!disabled && contrast(ink, paper) < (large ? 3 : 4.5))
      wrong.push(`contrast ${contrast(ink, paper).toFixed(2)}: ${tell(element)} ${element.textContent.slice(0, 30)}`);
  }
  for (const element of all("input:not([type=range]):not(.spoken), select, textarea")) {
    const style = getComputedStyle(element);
    const edge = over(parse(style.borderBottomColor), paperOf(element));
    const needed = element.tagName === "TEXTAREA" ? 1 : 3;
    if (contrast(edge, paperOf(element)) < needed)
      wrong.push(`border ${contrast(edge, paperOf(element)).toFixed(2)}: ${tell(element)}`);
  }

  // Nothing is wider than the window, and what is touched is large enough.
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width)
    wrong.push(`wider than the window by ${document.documentElement.scrollWidth - width}`);
  for (const element of all("button, select, input:not(.spoken), summary, nav a")) {
    const box = element.getBoundingClientRect();
    if (box.height < 24 && element.type !== "range")
      wrong.push(`${box.height.toFixed(0)} pixels high: ${tell(element)} ${element.textContent}`);
  }
  return wrong;
};
