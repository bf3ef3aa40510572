// @ts-check
// The networks of the chapter `flat_advi`, asked about a point of the plane.
import { makeFlat } from "./network.js";
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
export function askNetworks({ weights, draws, units }, x, y) {
  const p = new Float64Array(draws), both = new Float64Array(2 * draws), said = new Float64Array(1);
  const network = makeFlat({ X: new Float64Array(0), y: [], hidden: units }), point = Float64Array.of(x, y);
  for (let draw = 0; draw < draws; draw++) {
    network.predict(weights.subarray(draw * network.size, (draw + 1) * network.size), point, said);
    p[draw] = said[0];
    both.set([1 - p[draw], p[draw]], 2 * draw);
  }
  const { mean, noise, ignorance } = splitDoubt(both, 2);
  return { p, mean: mean[1], noise, ignorance };
}
