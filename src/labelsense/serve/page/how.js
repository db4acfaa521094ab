// How the decoder found the labels of a text: the measurements, and what each step leaves of them. It can be played.

import { documentOf } from "./desk.js";
import { $, breakable, list, make, MOVING, two, whole } from "./helpers.js";
import { makeRefinement } from "./refinement.js";
import { answerOrReason, state, ui } from "./server.js";

const MOST_BARS = 512;
const STEP_TIME = 900; // milliseconds a step when playing
const DECODERS = {
  OMPDecoder: "Orthogonal matching pursuit",
  FoBaDecoder: "Forward-backward pursuit",
  CoSaMPDecoder: "CoSaMP",
  LassoDecoder: "The Lasso",
  MultistageLassoDecoder: "The multi-stage Lasso",
  CorrelationDecoder: "Correlation",
  GroupOMPDecoder: "Group matching pursuit",
};
export const course = { text: null, project: null, answer: null, step: 0, timer: null, drawn: [], frame: null };

export async function courseOf(text) {
  if (course.text !== text || course.project !== state.project) {
    course.answer = await answerOrReason(ui("how"), documentOf(text));
    Object.assign(course, { text, project: state.project, step: course.answer.steps?.length ?? 0, drawn: [] });
  }
  return course.answer;
}

export const nameOfDecoder = (name) => DECODERS[name] ?? name.replace(/Decoder$/, "");

export function drawHow(answer, item) {
  if (answer.reason) {
    $("how").replaceChildren(make("p", {}, answer.reason));
    return;
  }
  const m = answer.measurements.length;
  const shown = Math.min(m, MOST_BARS);
  const some = shown < m ? ` The first ${whole(shown)} of them are drawn.` : "";
  $("how").replaceChildren(
    make(
      "p",
      { class: "lead" },
      `The model takes ${whole(m)} measurements of the text.${some} ${nameOfDecoder(answer.decoder)} `,
      "looks for the few labels that explain them: at each step it takes one, and ",
      make("span", { class: "for" }, "what is left"),
      " of the measurements falls.",
    ),
    make("div", { class: "course" }, makeBars(answer, shown), makeSteps(answer, item)),
    makeRefinement(answer, item),
  );
  drawStep(false);
}

function makeBars(answer, shown) {
  const picture = make(
    "svg:svg",
    { viewBox: `0 0 ${shown} 100`, preserveAspectRatio: "none", role: "img", "aria-labelledby": "how-caption" },
    make("svg:path", { class: "ghost", d: barsPath(answer.measurements.slice(0, shown), scaleOf(answer), 0) }),
    make("svg:path", { class: "left for", id: "bars-for" }),
    make("svg:path", { class: "left against", id: "bars-against" }),
  );
  const step = (by) => () => {
    stopPlaying();
    goTo(course.step + by);
  };
  return make(
    "figure",
    {},
    picture,
    make(
      "figcaption",
      { class: "small", id: "how-caption" },
      "Grey: what was measured. In colour: what the labels so far leave unexplained.",
    ),
    make(
      "p",
      { class: "line" },
      make("button", { type: "button", id: "play", onclick: play }, "Play"),
      make("button", { type: "button", id: "step-back", onclick: step(-1) }, "Back"),
      make("button", { type: "button", id: "step-on", onclick: step(1) }, "Step"),
      make("span", { id: "step-words", class: "small", "aria-live": "polite" }),
    ),
  );
}

const scaleOf = (answer) => 48 / Math.max(...answer.measurements.map(Math.abs), 1e-9);

/** Return bars as a path: all of them, or those of one sign. */
function barsPath(values, scale, sign) {
  return values
    .map((value, i) =>
      sign && Math.sign(value) !== sign ? "" : `M${i + 0.12} 50h.76V${(50 - scale * value).toFixed(1)}h-.76z`,
    )
    .join("");
}

function makeSteps(answer, item) {
  const lines = answer.steps.map((step, i) => {
    const coefficient = (uri) => step.coefficients.find((entry) => entry.uri === uri)?.value ?? 0;
    const bar = make("span", { class: "bar" });
    bar.style.transform = `scaleX(${Math.min(1, step.residual)})`;
    const dropped = step.dropped.length ? [make("s", {}, list(step.dropped)), " "] : [];
    const about = step.taken.some(({ uri }) => uri === item.uri) ? "chosen" : "";
    return make(
      "li",
      { class: about, "data-step": i + 1 },
      make("span", { class: "name" }, ...dropped, ...breakable(list(step.taken) || "weighs them anew")),
      make("span", { class: "score" }, step.taken.map(({ uri }) => two(coefficient(uri))).join(", ")),
      make("span", { class: "bars", "aria-hidden": "true" }, bar),
      make("span", { class: "score left" }, `${two(step.residual)} left`),
    );
  });
  return make("ol", { class: "steps", "aria-label": "Steps of the decoder" }, ...lines);
}

function goTo(step, moving = true) {
  course.step = Math.min(Math.max(step, 0), course.answer.steps.length);
  drawStep(moving);
}

/** Show the course up to the current step: its lines, and what is left of the measurements. */
function drawStep(moving) {
  const { answer, step } = course;
  for (const line of document.querySelectorAll(".steps li")) {
    line.classList.toggle("ahead", Number(line.dataset.step) > step);
    line.classList.toggle("now", Number(line.dataset.step) === step);
  }
  const left = step ? answer.steps[step - 1].left : answer.measurements;
  moveBars(left.slice(0, MOST_BARS), moving && MOVING.matches);
  const last = answer.steps[step - 1];
  $("step-words").textContent = step
    ? `step ${step} of ${answer.steps.length}: ${list(last.taken) || "weighs them anew"}, ${two(last.residual)} left`
    : "before the first step: all is left";
  $("step-back").disabled = step === 0;
  $("step-on").disabled = step === answer.steps.length;
}

function moveBars(target, moving) {
  cancelAnimationFrame(course.frame);
  const scale = scaleOf(course.answer);
  const from = course.drawn.length === target.length ? course.drawn : target;
  const started = performance.now();
  const draw = (now) => {
    const share = moving ? Math.min(1, Math.max(0, now - started) / 400) : 1;
    const eased = 1 - (1 - share) ** 3;
    course.drawn = target.map((value, i) => from[i] + (value - from[i]) * eased);
    $("bars-for")?.setAttribute("d", barsPath(course.drawn, scale, 1));
    $("bars-against")?.setAttribute("d", barsPath(course.drawn, scale, -1));
    if (share < 1) course.frame = requestAnimationFrame(draw);
  };
  draw(started);
}

function play() {
  if (course.timer) return stopPlaying();
  if (course.step === course.answer.steps.length) goTo(0, false);
  $("play").textContent = "Pause";
  course.timer = setInterval(() => {
    goTo(course.step + 1);
    if (course.step === course.answer.steps.length) stopPlaying();
  }, STEP_TIME);
  return undefined;
}

export function stopPlaying() {
  clearInterval(course.timer);
  course.timer = null;
  if ($("play")) $("play").textContent = "Play";
}
