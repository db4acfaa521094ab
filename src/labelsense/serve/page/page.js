// The page of `labelsense serve`: Text (labels, why, how, learning), Batch, Model. No framework, no build step, and
// nothing from elsewhere. This is where it starts. Each module has one concern, says at its top which, and none imports
// in a circle: helpers, server and desk are what the others share.

import { listenToBatch } from "./batch.js";
import { currentText } from "./desk.js";
import { $, make, memory, on } from "./helpers.js";
import { listenToLabels } from "./labels.js";
import { listenToLearning } from "./learning.js";
import { drawMirror } from "./mirror.js";
import { chooseProject, listenToProject } from "./project.js";
import { listenToReasons } from "./reasons.js";
import { ask, attempt, setKey, state } from "./server.js";
import { listenToTable } from "./table.js";
import { listenToText } from "./text.js";
import { listenToThreshold } from "./threshold.js";
import { currentView, listenToViews, showView } from "./views.js";

/** Take the key from the address, which is never sent to the server, and out of it. */
function takeKey() {
  const given = /^#key=(.+)$/.exec(location.hash);
  if (given) {
    setKey(decodeURIComponent(given[1]));
    history.replaceState(null, "", location.pathname);
  } else state.key = memory.get("key", "sessionStorage");
}

function listen() {
  listenToText();
  listenToLabels();
  listenToThreshold();
  listenToReasons();
  listenToLearning();
  listenToBatch();
  listenToTable();
  listenToProject();
  listenToViews();
  on("help-open", "click", () => $("help").showModal());
}

function start() {
  takeKey();
  listen();
  showView();
  $("document").value = memory.get("text") ?? "";
  $("clear").hidden = !currentText();
  drawMirror();
  if (matchMedia("(pointer: fine)").matches && currentView() === "text") $("document").focus();
  return attempt(async () => {
    state.service = await ask("/ui/service");
    const { projects } = state.service;
    $("project").replaceChildren(...projects.map((name) => make("option", {}, name)));
    const before = memory.get("project");
    await chooseProject(projects.includes(before) ? before : projects[0]);
  });
}

start();
