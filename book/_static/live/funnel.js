// @ts-check
// "Who gets stuck?": one posterior in two forms, and a walker of NUTS in each, with the same steps from the same sd.

import { exp, log } from "./elementary.js";
import { makeChain } from "./nuts.js";
import { fit, getColours } from "./paint.js";
import { makeRandom } from "./random.js";
import { SPOKEN } from "./report.js";
import { makeRun, paintOnFrames, play, put, watchTheme } from "./watch.js";

const PATIENTS = 18;
const [MIDDLE, SPREAD] = [log(0.2), 1.2]; // of the log sd, a normal: 95 % lie between 0.02 and 2
const STEP = 0.3; // of either walker
const STEPS = 150, RATE = 30; // trajectories that are shown, and how many a second
const CLOUD = 1500; // independent draws behind the walkers
const LOW = log(0.008), HIGH = log(4); // ends of the axis of the sd
const WIDE = 3.3; // of the other one, both ways
const TICKS = [0.01, 0.1, 1];
const BEGIN = 0.9; // the sd that both walkers start from, until the reader drags it
const FORMS = [
  { centred: true, name: "in the weights", across: "weight of one patient", colour: "#C25B9A" },
  { centred: false, name: "in the offsets", across: "offset = weight / sd", colour: "#009E73" },
];

/**
 * A group sd and a weight for each patient, before any data: log sd is normal, weights are N(0, sd). The unknowns are
 * log sd and the weights in the centred form, log sd and the weights divided by the sd in the other one.
 * @param {boolean} centred
 * @param {number} sd where a walker starts
 */
export function makeFunnel(centred, sd, patients = PATIENTS) {
  return {
    size: patients + 1,
    /** @param {Float64Array} theta @param {Float64Array} gradient */
    logDensity(theta, gradient) {
      const far = (theta[0] - MIDDLE) / SPREAD, scale = centred ? exp(-theta[0]) : 1;
      let logp = -0.5 * far * far;
      gradient[0] = -far / SPREAD;
      for (let i = 1; i <= patients; i++) {
        const z = theta[i] * scale;
        logp -= 0.5 * z * z;
        gradient[i] = -z * scale;
        if (!centred) continue;
        logp -= theta[0];
        gradient[0] += z * z - 1;
      }
      return logp;
    },
    /** @param {import("./random.js").Random} random @param {Float64Array} theta */
    start(random, theta) {
      theta[0] = log(sd);
      for (let i = 1; i <= patients; i++) theta[i] = (centred ? sd : 1) * random.normal();
    },
  };
}

/**
 * Where a walker has been, its start first: log sds, and what it says of the first patient.
 * @param {boolean} centred
 * @param {number} sd
 */
export function walk(centred, sd, steps = STEPS, seed = 1) {
  const model = makeFunnel(centred, sd), begin = new Float64Array(model.size);
  const chain = makeChain({ model, seed, chain: 0, tune: 0, draws: steps, maxDepth: 6, firstStep: STEP });
  model.start(makeRandom(seed, 0), begin);
  const [ups, across] = [[begin[0]], [begin[1]]];
  while (!chain.done) {
    const { theta } = chain.step();
    ups.push(theta[0]);
    across.push(theta[1]);
  }
  return { ups, across };
}

/** What a walk comes to: the sds between which it was, and how much it saw of a 95 % interval. @param {number[]} ups */
export function judgeWalk(ups) {
  const low = Math.min(...ups), high = Math.max(...ups), [from, to] = [MIDDLE - 2 * SPREAD, MIDDLE + 2 * SPREAD];
  const share = (Math.min(high, to) - Math.max(low, from)) / (to - from);
  return { low: exp(low), high: exp(high), word: share < 0.1 ? "stuck" : share < 0.6 ? "sees a part" : "walks freely" };
}

/** Draws of the target itself, (log sd, offset) each: what a walker should fill. */
function drawCloud() {
  const random = makeRandom(1, 1);
  return Array.from({ length: CLOUD }, () => [MIDDLE + SPREAD * random.normal(), random.normal()]);
}

/** @param {number} sd */
const write = (sd) => (sd < 0.1 ? sd.toFixed(3) : sd.toFixed(2));

/** The parts of the box as HTML. @param {string} id */
function writeBox(id) {
  const panel = (/** @type {typeof FORMS[0]} */ { name, across }, /** @type {number} */ k) => `<div class="live-view">
    <p>${name}</p><canvas data-form="${k}" role="img" aria-label="${name}"></canvas>
    <p class="live-scale" aria-hidden="true">${across}</p>
    <p class="funnel-said"><b></b> <span></span></p></div>`;
  return `
<p class="live-ask"><b>Two walkers, one posterior: who gets stuck?</b> Drag the group sd down, and let go.</p>
<div class="live-stage funnel-stage">
  ${panel(FORMS[0], 0)}
  <div class="funnel-slider"><label for="${id}-sd">group sd</label>
    <input type="range" id="${id}-sd" min="0" max="100" step="1">
    <output for="${id}-sd"></output></div>
  ${panel(FORMS[1], 1)}
</div>
${SPOKEN}`;
}

/** Build a box into a figure. @param {HTMLElement} figure @param {HTMLElement} box */
export function build(figure, box) {
  box.innerHTML = writeBox(`live-${figure.id}`);
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Who gets stuck?");
  const find = (/** @type {string} */ selector) => /** @type {any} */ (box.querySelector(selector));
  const canvases = /** @type {HTMLCanvasElement[]} */ ([...box.querySelectorAll("canvas")]);
  const said = [...box.querySelectorAll(".funnel-said")], slider = find("input"), cloud = drawCloud();
  let sd = BEGIN, taken = 0, runs = 0, walks = FORMS.map(({ centred }) => walk(centred, sd, 0));

  const paint = paintOnFrames(canvases.map((canvas, k) => () => paintPanel(canvas, FORMS[k], cloud, walks[k], taken)));
  const run = makeRun(box, () => {
    runs += 1; // another walk each time
    walks = FORMS.map(({ centred }) => walk(centred, sd, STEPS, runs));
    return play(STEPS, RATE, (now) => {
      if (now === taken) return;
      taken = now;
      paint();
      tell();
    });
  });

  /** Say how far both have come; aloud when they have arrived. */
  function tell() {
    const isDone = taken === STEPS, words = walks.map(({ ups }) => judgeWalk(ups.slice(0, taken + 1)));
    words.forEach(({ low, high, word }, k) => {
      put(said[k].children[0], { textContent: isDone ? word : taken ? "…" : "" });
      put(said[k].children[1], { textContent: taken ? `sd ${write(low)} to ${write(high)}` : "" });
    });
    box.dataset.state = isDone ? "done" : "running";
    if (!isDone) return;
    const lines = words.map(({ low, high, word }, k) =>
      `${FORMS[k].name}: ${word}, sd from ${write(low)} to ${write(high)} in ${STEPS} steps`);
    lines.forEach((line, k) => canvases[k].setAttribute("aria-label", line));
    put(find("[role=status]"), { textContent: `${lines.join(". ")}.` });
  }

  /** Put both walkers at a height. @param {number} height a log sd */
  function place(height) {
    sd = exp(Math.min(HIGH, Math.max(LOW, height)));
    taken = 0;
    walks = FORMS.map(({ centred }) => walk(centred, sd, 0));
    put(slider, { value: String(Math.round((100 * (log(sd) - LOW)) / (HIGH - LOW))), "aria-valuetext": write(sd) });
    put(find("output"), { value: write(sd) });
    tell();
    paint();
    run.restart();
  }

  slider.addEventListener("input", () => place(LOW + (Number(slider.value) / 100) * (HIGH - LOW)));
  for (const canvas of canvases) {
    const follow = (/** @type {PointerEvent} */ event) => {
      if (event.type === "pointermove" && !(event.buttons && event.pointerType === "mouse")) return;
      const { top, height } = canvas.getBoundingClientRect();
      place(HIGH - ((event.clientY - top) / height) * (HIGH - LOW));
    };
    canvas.addEventListener("pointermove", follow);
    canvas.addEventListener("click", (event) => follow(/** @type {PointerEvent} */ (event)));
    canvas.addEventListener("pointerdown", ({ pointerId }) => canvas.setPointerCapture(pointerId));
  }
  watchTheme(paint);
  new ResizeObserver(paint).observe(canvases[0]);
  place(log(sd));
}

/**
 * The target as a cloud, the start as a dashed line, and the walker with its trail.
 * @param {HTMLCanvasElement} canvas
 * @param {typeof FORMS[0]} form
 * @param {number[][]} cloud
 * @param {{ ups: number[], across: number[] }} walker
 * @param {number} taken steps so far
 */
function paintPanel(canvas, { centred, colour }, cloud, { ups, across }, taken) {
  const { ctx, side, scale } = fit(canvas), { ink, paper } = getColours();
  const right = (/** @type {number} */ x) => (0.5 + x / (2 * WIDE)) * side;
  const down = (/** @type {number} */ up) => ((HIGH - up) / (HIGH - LOW)) * side;
  const dot = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ size) => {
    ctx.beginPath();
    ctx.arc(x, y, size * scale, 0, 2 * Math.PI);
    ctx.fill();
  };
  ctx.fillStyle = paper;
  ctx.fillRect(0, 0, side, side);
  ctx.fillStyle = ink;
  ctx.globalAlpha = 0.22;
  const size = side / scale / 240;
  for (const [up, z] of cloud) dot(right(centred ? exp(up) * z : z), down(up), size);
  ctx.globalAlpha = 0.75;
  ctx.font = `${11 * scale}px system-ui, sans-serif`;
  ctx.textBaseline = "middle";
  ctx.fillText("group sd", 5 * scale, 9 * scale);
  for (const tick of TICKS) ctx.fillText(String(tick), 5 * scale, down(log(tick)));
  ctx.globalAlpha = 0.6;
  ctx.setLineDash([4 * scale, 4 * scale]);
  ctx.strokeStyle = ink;
  ctx.lineWidth = scale;
  ctx.beginPath();
  ctx.moveTo(0, down(ups[0]));
  ctx.lineTo(side, down(ups[0]));
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.globalAlpha = 0.35;
  ctx.lineWidth = scale;
  ctx.beginPath();
  for (let i = 0; i <= taken; i++) ctx.lineTo(right(across[i]), down(ups[i]));
  ctx.stroke();
  ctx.globalAlpha = 0.9;
  for (let i = 0; i <= taken; i++) dot(right(across[i]), down(ups[i]), 2);
  const been = ups.slice(0, taken + 1), [low, high] = [down(Math.min(...been)), down(Math.max(...been))];
  ctx.fillRect(side - 7 * scale, high - scale, 5 * scale, low - high + 2 * scale); // the sds between which it was
  ctx.globalAlpha = 1;
  for (const [fill, size] of /** @type {[string, number][]} */ ([[paper, 9], [colour, 7]])) {
    ctx.fillStyle = fill;
    dot(right(across[taken]), down(ups[taken]), size);
  }
}
