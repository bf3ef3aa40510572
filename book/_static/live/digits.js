// @ts-check
// The networks of the chapter `digits`: unpacked, asked about an image, and their answer in words.
import { splitDoubt, unpackWhole } from "./stored.js";

const N_CLASSES = 10;

/**
 * @typedef {object} Networks
 * @property {Float32Array} weights  all of a draw, draw after draw
 * @property {number} draws
 * @property {number[][]} layers  inputs and outputs of each layer
 */
/** @typedef {import("./stored.js").Doubt & { p: Float64Array, best: number, knows: boolean }} Answer */

/**
 * Unpack two hundred networks: mean and sd of every weight, and of every draw which of a few levels it is at.
 * @param {any} about
 * @param {ArrayBuffer} buffer
 * @returns {Networks}
 */
export function unpackNetworks(about, buffer) {
  const { digits, draws, levels, steps } = about;
  const layers = ["w1", "w2", "w3"].map((name) => about.shapes[name]);
  const size = layers.reduce((sum, [inputs, outputs]) => sum + (inputs + 1) * outputs, 0);
  const mean = unpackWhole(buffer, 0, size, steps.mean), sd = unpackWhole(buffer, size, size, steps.sd);
  const words = new Uint32Array(buffer, 4 * size), weights = new Float32Array(draws * size);
  for (let k = 0, word = 0; k < weights.length; k++) {
    word = k % digits ? Math.floor(word / levels.length) : words[k / digits];
    weights[k] = mean[k % size] + sd[k % size] * levels[word % levels.length];
  }
  return { weights, draws, layers };
}

/**
 * Class probabilities of an image, network by network.
 * @param {Networks} networks
 * @param {ArrayLike<number>} image
 */
export function predict({ weights, draws, layers }, image) {
  const p = new Float64Array(draws * N_CLASSES);
  let place = 0;
  for (let draw = 0; draw < draws; draw++) {
    let h = image;
    layers.forEach(([inputs, outputs], depth) => {
      h = addUp(weights, place, h, outputs);
      place += (inputs + 1) * outputs;
      if (depth < layers.length - 1) h = /** @type {Float64Array} */ (h).map(Math.tanh);
    });
    p.set(softmax(/** @type {Float64Array} */ (h)), draw * N_CLASSES);
  }
  return p;
}

/**
 * One layer: the biases, and each input times its weights.
 * @param {Float32Array} weights
 * @param {number} place  where the layer's begin; its biases stand behind them
 * @param {ArrayLike<number>} h
 * @param {number} outputs
 */
function addUp(weights, place, h, outputs) {
  const start = place + h.length * outputs, sums = Float64Array.from(weights.subarray(start, start + outputs));
  for (let i = 0; i < h.length; i++) {
    const input = h[i], row = place + i * outputs;
    if (input) for (let j = 0; j < outputs; j++) sums[j] += input * weights[row + j];  // most pixels are paper
  }
  return sums;
}

/** @param {Float64Array} a */
function softmax(a) {
  const top = Math.max(...a), e = a.map((value) => Math.exp(value - top)), sum = e.reduce((x, y) => x + y, 0);
  return e.map((value) => value / sum);
}

/**
 * What the networks say to an image, and whether their ignorance is below the limit.
 * @param {Networks} networks
 * @param {ArrayLike<number>} image
 * @param {number} limit
 * @returns {Answer}
 */
export function ask(networks, image, limit) {
  const p = predict(networks, image), doubt = splitDoubt(p, N_CLASSES);
  return { ...doubt, p, best: doubt.mean.indexOf(Math.max(...doubt.mean)), knows: doubt.ignorance <= limit };
}

/** @param {number} p */
export const percent = (p) => `${Math.round(100 * p)}\u00a0%`;

/**
 * An answer in words: the short one, and why.
 * @param {Answer} answer
 * @param {number} limit
 * @param {boolean} [isStranger] whether what was shown is known to be no digit
 */
export function describe({ mean, best, knows, ignorance }, limit, isStranger = false) {
  const guess = `${best}, ${percent(mean[best])}`;
  const digits = Math.abs(ignorance - limit) < 0.01 ? 4 : 2;  // "1.36, above 1.36" would be a riddle
  const bits = ignorance.toFixed(digits), most = limit.toFixed(digits);
  const found = `ignorance ${bits} bits, below its limit of ${most}`;
  if (knows && isStranger) {
    return { short: guess, why: `${percent(mean[best])} sure, and wrong: not every stranger is noticed (${found}).` };
  }
  return knows
    ? { short: guess, why: `The networks agree well enough: ${found}.` }
    : {
      short: "I don’t know",
      why: `because the networks disagree: ignorance ${bits} bits, above its limit of ${most}. Best guess: ${guess}.`,
    };
}
