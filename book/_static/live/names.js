// @ts-check
// "Names are not facts": five units change places and signs, and what they say stays. Then two chains are lined up.

import { makeFlat } from "./network.js";
import { makeChain } from "./nuts.js";
import { fit, getColours, makeGrid, paintBoundary, paintMap, paintPoints, traceBoundary } from "./paint.js";
import { PRESETS } from "./points.js";
import { makeRun, play, put, wantsStillness, watchTheme } from "./watch.js";

const UNITS = 5, ROWS = 3; // a unit has two weights in and one out
const POINTS = PRESETS.moons.draw(), GRID = makeGrid(30);
const SD = 4; // of the prior: wide, so that units are steep and keep their names for a while
const TUNE = 150, DRAWS = 200, RATE = 120; // of a chain; draws a second
const GLIDE = 24; // pictures while units glide to their places
const SIGNS = { light: ["#A6611A", "#018571"], dark: ["#E0A860", "#35B8A0"] }; // negative and positive

/** @typedef {{ order: number[], sign: number[] }} Names place j is taken by unit order[j], with that sign */

export const makeModel = () => makeFlat({
  X: Float64Array.from(POINTS.flatMap(({ x, y }) => [x, y])), y: POINTS.map(({ label }) => label), hidden: [UNITS],
  sd: SD,
});

/** The same network under other names. @param {Float64Array} w @param {Names} names */
export function rename(w, { order, sign }) {
  return w.map((_, i) => sign[i % UNITS] * w[i - (i % UNITS) + order[i % UNITS]]);
}

/** All orders of so many places. @param {number} n @returns {number[][]} */
const listOrders = (n) => (n === 0 ? [[]]
  : listOrders(n - 1).flatMap((rest) => [...rest, n].map((_, k) => [...rest.slice(0, k), n - 1, ...rest.slice(k)])));
const ORDERS = listOrders(UNITS);

/** The names under which a network resembles another one most. @param {Float64Array} w @param {Float64Array} other */
function findNames(w, other) {
  const alike = Array.from({ length: UNITS }, (_, j) => Array.from({ length: UNITS }, (__, i) =>
    [0, 1, 2].reduce((sum, r) => sum + w[r * UNITS + i] * other[r * UNITS + j], 0)));
  let most = -1, best = ORDERS[0];
  for (const order of ORDERS) {
    let sum = 0;
    for (let j = 0; j < UNITS; j++) sum += Math.abs(alike[j][order[j]]);
    if (sum > most) [most, best] = [sum, order];
  }
  return { order: best, sign: best.map((i, j) => (alike[j][i] < 0 ? -1 : 1)) };
}

/** Names for each draw, as the chapter finds them: like the last, then like the mean. @param {Float64Array[]} draws */
export function align(draws) {
  let reference = draws[draws.length - 1], names = draws.map((w) => findNames(w, reference));
  for (let round = 0; round < 3; round++) {
    reference = average(draws.map((w, k) => rename(w, names[k])));
    names = draws.map((w) => findNames(w, reference));
  }
  return names;
}

/** @param {Float64Array[]} draws */
export const average = (draws) => draws[0].map((_, i) => draws.reduce((sum, w) => sum + w[i], 0) / draws.length);

/** Correlations of all pairs of weights, those of a unit side by side. @param {Float64Array[]} draws */
export function correlate(draws) {
  const mean = average(draws), n = UNITS * ROWS;
  const columns = Array.from({ length: n }, (_, k) => {
    const i = (k % ROWS) * UNITS + Math.floor(k / ROWS), column = draws.map((w) => w[i] - mean[i]);
    const length = Math.sqrt(column.reduce((sum, x) => sum + x * x, 0)) || 1;
    return column.map((x) => x / length);
  });
  return columns.flatMap((a) => columns.map((b) => a.reduce((sum, x, d) => sum + x * b[d], 0)));
}

/** The mean of what the draws say. @param {import("./network.js").Model} model @param {Float64Array[]} draws */
export function predict(model, draws) {
  const n = GRID.length / 2, sum = new Float64Array(n), p = new Float64Array(n);
  for (const w of draws) {
    model.predict(w, GRID, p);
    p.forEach((value, i) => { sum[i] += value / draws.length; });
  }
  return sum;
}

/** How far two lists of numbers are apart, place by place. @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
const compare = (a, b) => Array.from(a, (value, i) => Math.abs(value - b[i]));

const PICTURES = { graph: "mean weights", correlations: "their correlations", map: "what it says" };
/** The three pictures of a chain. @param {number} k */
const writeRow = (k) => Object.entries(PICTURES).map(([name, what]) => `
  <div class="live-view"${k ? " hidden" : ""}><p>${what}</p>
    <canvas data-picture="${name} ${k}" role="img" aria-label="Chain ${k + 1}: ${what}"></canvas></div>`).join("");

const BOX = `
<p class="live-ask"><b>What changes, what stays?</b> <span>Swap two units, or turn the sign of one.</span></p>
<div class="live-row live-tools"><button type="button" data-do="swap">Swap two units</button>
  <button type="button" data-do="turn">Turn a sign</button>
  <button type="button" data-do="second">Run a second chain</button>
  <button type="button" data-do="line" hidden>Line them up</button>
</div>
<div class="live-stage names-stage">${writeRow(0)}${writeRow(1)}</div>
<p class="names-said" role="status"></p>`;

/** Build a box into a figure. @param {HTMLElement} _ @param {HTMLElement} box */
export function build(_, box) {
  box.innerHTML = BOX;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Names are not facts");
  const find = (/** @type {string} */ selector) => /** @type {any} */ (box.querySelector(selector));
  const list = (/** @type {string} */ selector) => /** @type {any[]} */ ([...box.querySelectorAll(selector)]);
  const model = makeModel();
  /** @type {ReturnType<typeof learn>[]} */
  const chains = [];
  let running = 0, acts = 0;
  /** @type {import("./watch.js").Handle | null} */ let glide = null;

  /** @param {Float64Array[]} draws */
  const learn = (draws) =>
    ({ draws, mean: average(draws), correlations: correlate(draws), map: predict(model, draws) });

  /** @param {number} k @param {Float64Array} mean of its weights @param {number[]} [places] of its units */
  function paint(k, mean = chains[k].mean, places = ORDERS[0].map((_, j) => j)) {
    const canvas = (/** @type {string} */ name) => find(`[data-picture="${name} ${k}"]`), map = canvas("map");
    paintGraph(canvas("graph"), mean, places);
    paintCorrelations(canvas("correlations"), chains[k].correlations);
    paintMap(map, Float32Array.from(chains[k].map), "probability");
    paintBoundary(map, traceBoundary(Float32Array.from(chains[k].map)));
    paintPoints(map, POINTS, 2.4);
  }
  const paintAll = () => chains.forEach((_, k) => paint(k));

  const run = makeRun(box, () => {
    const mine = running, chain = makeChain({ model, seed: 1, chain: mine, tune: TUNE, draws: DRAWS });
    /** @type {Float64Array[]} */ const draws = [];
    return play(TUNE + DRAWS, RATE, (taken) => {
      while (chain.taken < taken) {
        const { theta, tuning } = chain.step();
        if (tuning || chain.taken === TUNE + 1) draws.length = 0;
        draws.push(theta.slice());
      }
      if (!draws.length || (wantsStillness() && !chain.done)) return;
      chains[mine] = learn(draws);
      paint(mine);
      if (!chain.done) return;
      box.dataset.state = "done";
      list("button").forEach((button) => { button.disabled = false; });
      put(find(".names-said"), { textContent: mine ? sayApart() : "" });
    }, false);
  });

  /** Run a chain: meanwhile nobody is renamed. @param {number} k */
  function begin(k) {
    running = k;
    box.dataset.state = "running";
    list("button").forEach((button) => { button.disabled = true; });
    put(find(".names-said"), { textContent: `Chain ${k + 1} is running in your browser.` });
    run.restart();
  }

  /** How far both chains are apart. */
  function sayApart() {
    const [map, mean, both] = /** @type {const} */ (["map", "mean", "correlations"]).map((what) => {
      const far = compare(chains[0][what], chains[1][what]);
      return (far.reduce((sum, x) => sum + x, 0) / far.length).toFixed(2);
    });
    return `Two chains say the same: they differ by ${map} in that, by ${mean} in a weight, by ${both} in a correlation.`;
  }

  /** Give new names to the draws of each chain, and let units glide to their places. @param {Names[][]} names
   * @param {string} [why] what that did */
  function giveNames(names, why = "") {
    const before = chains.slice(0, names.length);
    before.forEach(({ draws }, k) => { chains[k] = learn(draws.map((w, d) => rename(w, names[k][d]))); });
    const most = (/** @type {"mean" | "map"} */ what) => Math.max(...compare(before[0][what], chains[0][what]));
    const moved = `The weights moved by up to ${most("mean").toFixed(1)}, what they say by ${most("map").toFixed(3)}.`;
    put(find(".names-said"), { textContent: chains[1] ? sayApart() + why : moved });
    glide?.stop();
    glide = play(GLIDE, 60, (taken) => before.forEach((old, k) => {
      const { order } = names[k][names[k].length - 1], share = taken / GLIDE, { mean } = chains[k];
      const from = mean.map((_, i) => old.mean[i - (i % UNITS) + order[i % UNITS]]);
      paint(k, mean.map((w, i) => share * w + (1 - share) * from[i]), order.map((i, j) => share * j + (1 - share) * i));
    }));
  }

  const NOBODY = { order: ORDERS[0].map((_, j) => j), sign: ORDERS[0].map(() => 1) };
  /** The same names for all draws of a chain. @param {Partial<Names>} names */
  const change = (names) => giveNames([chains[0].draws.map(() => ({ ...NOBODY, ...names }))]);
  /** @type {Record<string, () => void>} */
  const actions = {
    swap() {
      const [a, b] = [acts % UNITS, (acts + 2) % UNITS], order = [...NOBODY.order];
      [order[a], order[b]] = [b, a];
      change({ order });
    },
    turn: () => change({ sign: NOBODY.sign.map((_, j) => (j === acts % UNITS ? -1 : 1)) }),
    second() {
      list(".live-view, [data-do]").forEach((part) => { part.hidden = part.dataset.do === "second"; });
      put(find(".live-ask span"), { textContent: "Two chains, and two sets of names: line them up." });
      begin(1);
    },
    line() {
      const names = align(chains.flatMap(({ draws }) => draws));
      giveNames([names.slice(0, DRAWS), names.slice(DRAWS)], " Units that had traded names no longer cancel in the mean.");
    },
  };
  box.addEventListener("click", ({ target }) => {
    const action = /** @type {Element} */ (target).closest("button")?.dataset.do;
    if (action) actions[action]();
    acts += 1;
  });
  watchTheme(paintAll);
  new ResizeObserver(paintAll).observe(find("canvas"));
  begin(0);
}

const getSigns = () => SIGNS[document.documentElement.dataset.theme === "dark" ? "dark" : "light"];

/** The thicker a line, the larger its weight. @param {HTMLCanvasElement} canvas @param {Float64Array} w
 * @param {number[]} places of the units, from 0 at the top */
function paintGraph(canvas, w, places) {
  const { ctx, side, scale } = fit(canvas), { ink, paper } = getColours(), signs = getSigns();
  const units = places.map((place) => [0.5, 0.11 + (0.78 * place) / (UNITS - 1)]);
  const ends = [[0.1, 0.31], [0.1, 0.69], [0.9, 0.5]], unit = side / (40 * SD);
  ctx.fillStyle = paper;
  ctx.fillRect(0, 0, side, side);
  units.forEach((at, j) => ends.forEach((end, r) => {
    const weight = w[r * UNITS + j];
    ctx.beginPath();
    ctx.moveTo(at[0] * side, at[1] * side);
    ctx.lineTo(end[0] * side, end[1] * side);
    ctx.strokeStyle = signs[weight < 0 ? 0 : 1];
    ctx.lineWidth = Math.abs(weight) * unit;
    ctx.stroke();
  }));
  [...units, ...ends].forEach(([x, y], k) => {
    ctx.beginPath();
    ctx.arc(x * side, y * side, (k < UNITS ? 0.05 : 0.035) * side, 0, 2 * Math.PI);
    ctx.fillStyle = paper;
    ctx.fill();
    ctx.lineWidth = 1.5 * scale;
    ctx.strokeStyle = ink;
    ctx.stroke();
  });
}

/** A square for each pair of weights. @param {HTMLCanvasElement} canvas @param {number[]} correlations */
function paintCorrelations(canvas, correlations) {
  const { ctx, side } = fit(canvas), n = UNITS * ROWS, signs = getSigns(), edge = side / n;
  ctx.fillStyle = getColours().paper;
  ctx.fillRect(0, 0, side, side);
  correlations.forEach((r, k) => {
    ctx.globalAlpha = Math.min(1, Math.abs(r));
    ctx.fillStyle = signs[r < 0 ? 0 : 1];
    ctx.fillRect((k % n) * edge, Math.floor(k / n) * edge, edge + 0.5, edge + 0.5);
  });
  ctx.globalAlpha = 1;
}
