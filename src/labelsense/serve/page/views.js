// The views Text, Batch and Model, each with an address.

import { $ } from "./helpers.js";
import { drawLabels } from "./labels.js";
import { showModel } from "./model.js";
import { state } from "./server.js";

const VIEWS = ["text", "batch", "model"];
export const currentView = () => VIEWS.find((name) => location.hash === `#${name}`) ?? "text";

export function showView() {
  const view = currentView();
  for (const name of VIEWS) {
    $(`view-${name}`).hidden = name !== view;
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (name === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = view === "text" ? "labelsense" : `labelsense: ${view}`;
  $("trouble").hidden = true;
  scrollTo(0, 0);
  if (view === "model" && state.project) showModel();
  if (view === "text" && state.project) drawLabels();
}

export function listenToViews() {
  addEventListener("hashchange", showView);
}
