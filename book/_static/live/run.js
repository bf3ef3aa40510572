// @ts-check
/**
 * What a run adds up of its draws, on both sides of a worker: pictures while it goes on, quantities for the verdict.
 */

import { log } from "./elementary.js";
import { makeFlat, makeHierarchical } from "./network.js";

/** @typedef {import("./network.js").Model} Model */

/**
 * @typedef {object} Job
 * @property {Record<string, any> & { kind: "flat" | "hierarchical" }} model the kind, and what makeFlat or
 *   makeHierarchical takes
 * @property {{ seed: number, chains?: number, tune?: number, draws?: number, targetAccept?: number, maxDepth?: number,
 *   steps?: number, starts?: number }} settings
 * @property {Float64Array} points x1, x2, x1, x2, …
 * @property {Int32Array} [groups] of each point, in a hierarchical model
 */

/**
 * @typedef {object} Report of a chain
 * @property {number} chain
 * @property {number} taken draws so far, tuning included
 * @property {number} gradients
 * @property {boolean} tuning
 * @property {number} divergences after tuning
 * @property {number} count draws in the sums; while tuning, the last ones, by and by forgotten
 * @property {Float64Array} probability summed over draws, at each point
 * @property {Float64Array} entropy likewise, bits
 * @property {Float32Array} latest probabilities of the latest draw
 * @property {Record<string, number>} describe of the latest draw
 * @property {Record<string, number>} described summed over draws
 */

/**
 * @typedef {object} Picture
 * @property {number} count draws
 * @property {Float32Array} mean probability of class 1
 * @property {Float32Array} noise mean entropy, bits
 * @property {Float32Array} ignorance mutual information of label and network, bits
 */

const FORGET = 0.95; // of the sums, at each draw of the tuning
const JUDGED = 100; // points whose probabilities are judged

/** @param {Job["model"]} description @returns {Model} */
export function makeModel({ kind, ...options }) {
  if (kind === "flat") return makeFlat(/** @type {any} */ (options));
  if (kind === "hierarchical") return makeHierarchical(/** @type {any} */ (options));
  throw new RangeError(`kind=${kind}; wanted: "flat" or "hierarchical"`);
}

/** Entropy of a label, bits. @param {number} p */
export function computeEntropy(p) {
  if (!(p > 0 && p < 1)) return 0;
  return -(p * log(p) + (1 - p) * log(1 - p)) / Math.LN2;
}

/**
 * What is judged besides the log likelihood and the sds: up to a hundred of the points, spread over them by the golden
 * ratio, so that no row or column of a grid is preferred; numbers of points, in order.
 * @param {number} n how many there are
 */
export function chooseJudged(n) {
  if (n <= JUDGED) return Array.from({ length: n }, (_, i) => i);
  const chosen = new Set();
  for (let i = 0; chosen.size < JUDGED; i++) chosen.add(Math.floor(((i * 0.6180339887498949) % 1) * n));
  return [...chosen].sort((a, b) => a - b);
}

/**
 * The sums of one chain.
 * @param {Job} job
 * @param {Model} model
 * @param {number} chain its number
 */
export function makeTally(job, model, chain) {
  const n = job.points.length / 2;
  const nDraws = job.settings.draws ?? 500;
  const latest = new Float64Array(n);
  const probability = new Float64Array(n);
  const entropy = new Float64Array(n);
  const energy = new Float64Array(nDraws);
  const divergent = new Uint8Array(nDraws);
  const judged = chooseJudged(job.points.length / 2);
  /** @type {Record<string, Float64Array>} */
  const quantities = {};
  const atPoints = judged.map((i) => (quantities[`point ${i}`] = new Float64Array(nDraws)));
  /** @type {Record<string, number>} */
  let describe = {};
  /** @type {Record<string, number>} */
  const described = {};
  let count = 0;
  let kept = 0;
  let tuning = true;
  let divergences = 0;

  /** @param {number} share that stays */
  function forget(share) {
    count *= share;
    for (let i = 0; i < n; i++) {
      probability[i] *= share;
      entropy[i] *= share;
    }
    for (const name of Object.keys(described)) described[name] *= share;
  }

  /** @param {string} name @param {number} value */
  const note = (name, value) => ((quantities[name] ??= new Float64Array(nDraws))[kept] = value);

  /** @param {{ theta: Float64Array, tuning: boolean, divergent: boolean, energy: number }} draw */
  function add(draw) {
    model.predict(draw.theta, job.points, latest, job.groups);
    describe = model.describe(draw.theta);
    forget(draw.tuning ? FORGET : tuning ? 0 : 1);
    tuning = draw.tuning;
    count += 1;
    for (let i = 0; i < n; i++) {
      probability[i] += latest[i];
      entropy[i] += computeEntropy(latest[i]);
    }
    for (const [name, value] of Object.entries(describe)) described[name] = (described[name] ?? 0) + value;
    if (tuning) return;
    for (let k = 0; k < judged.length; k++) atPoints[k][kept] = latest[judged[k]];
    for (const [name, value] of Object.entries(describe)) note(name, value);
    note("log likelihood", model.logLikelihood(draw.theta));
    energy[kept] = draw.energy;
    divergent[kept] = draw.divergent ? 1 : 0;
    divergences += divergent[kept];
    kept += 1;
  }

  /** @param {{ taken: number, gradients: number }} sampler @returns {Report} */
  function report({ taken, gradients }) {
    return {
      chain, taken, gradients, tuning, divergences, count, probability, entropy, latest: Float32Array.from(latest),
      describe, described: { ...described },
    }; // prettier-ignore
  }

  return { add, report, hand: () => ({ chain, quantities, energy, divergent }) };
}

/**
 * One picture of the chains that have done with tuning, or, while there is none, of all. Chains are added in their
 * order, so that the workers they ran in change no bit.
 * @param {Report[]} reports
 * @returns {Picture & { described: Record<string, number> }}
 */
export function combine(reports) {
  const drawn = reports.filter(({ tuning }) => !tuning);
  const used = [...(drawn.length ? drawn : reports)].sort((a, b) => a.chain - b.chain);
  const n = used[0].probability.length;
  const count = used.reduce((sum, report) => sum + report.count, 0);
  const picture = { count, mean: new Float32Array(n), noise: new Float32Array(n), ignorance: new Float32Array(n) };
  for (let i = 0; i < n; i++) {
    let p = 0;
    let h = 0;
    for (const { probability, entropy } of used) {
      p += probability[i];
      h += entropy[i];
    }
    p /= count;
    h /= count;
    picture.mean[i] = p;
    picture.noise[i] = h;
    picture.ignorance[i] = Math.max(0, computeEntropy(p) - h);
  }
  /** @type {Record<string, number>} */
  const described = {};
  for (const name of Object.keys(used[0].described)) {
    described[name] = used.reduce((sum, report) => sum + report.described[name], 0) / count;
  }
  return { ...picture, described };
}
