// @ts-check
// The networks of the chapter `flat_advi`, asked about a point of the plane.
import { splitDoubt, unpackWhole } from "./stored.js";

/**
 * @typedef {object} Networks
 * @property {Float64Array} weights  all of a draw, draw after draw
 * @property {number} draws
 * @property {number[]} units  of the first and the second hidden layer
 */
/** @typedef {{ p: Float64Array, mean: number, noise: number, ignorance: number }} Answer  p by draw; bits */

/**
 * Unpack the networks of each method.
 * @param {any} about
 * @param {ArrayBuffer} buffer
 * @returns {Record<string, Networks>}
 */
export function unpackMethods(about, buffer) {
  const [[features, first], [, second]] = [about.shapes.w1, about.shapes.w2];
  const size = features * first + first * second + second;
  return Object.fromEntries(Object.entries(about.methods).map(([name, { draws, first: start, step }]) =>
    [name, { weights: unpackWhole(buffer, start, draws * size, step), draws, units: [first, second] }]));
}

/**
 * What networks say of a point: P(attack) by each of them, its mean, and the two kinds of doubt.
 * @param {Networks} networks
 * @param {number} x
 * @param {number} y
 * @returns {Answer}
 */
export function askNetworks({ weights, draws, units: [first, second] }, x, y) {
  const p = new Float64Array(draws), both = new Float64Array(2 * draws), h = new Float64Array(first);
  const size = weights.length / draws;
  for (let draw = 0; draw < draws; draw++) {
    const w1 = draw * size, w2 = w1 + 2 * first, w3 = w2 + first * second;
    for (let j = 0; j < first; j++) h[j] = Math.tanh(x * weights[w1 + j] + y * weights[w1 + first + j]);
    let sum = 0;
    for (let k = 0; k < second; k++) {
      let a = 0;
      for (let j = 0; j < first; j++) a += h[j] * weights[w2 + j * second + k];
      sum += Math.tanh(a) * weights[w3 + k];
    }
    p[draw] = 1 / (1 + Math.exp(-sum));
    both.set([1 - p[draw], p[draw]], 2 * draw);
  }
  const { mean, noise, ignorance } = splitDoubt(both, 2);
  return { p, mean: mean[1], noise, ignorance };
}
