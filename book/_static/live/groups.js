// @ts-check
// Six small data sets: moons that are turned by another angle in each, as the book's are. The last one is the reader's.

import { EXTENT, scatterMoons, snap } from "./points.js";

/** @typedef {import("./points.js").Point} Point */

const ANGLES = [-50, -25, 5, 30, 55]; // degrees, of the five that lend
const EACH = 12; // points of a class
const MINE = 40;
export const N_GROUPS = ANGLES.length + 1;

/** Turn a point around the centre. @param {Point} point @param {number} degrees */
function turn({ x, y, label }, degrees) {
  const [c, s] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  return snap(c * x - s * y, s * x + c * y, label);
}

/** The points of the five, of which each has other points: list of lists. */
export function drawOthers() {
  return ANGLES.map((angle, g) => scatterMoons(EACH, 40 * g).map((point) => turn(point, angle)));
}

/** What the reader finds: two points of each class, which say the angle and nothing of the bend. */
export function drawMine() {
  return [[-0.5, 1.3, 0], [-1.1, 0.9, 0], [0.5, -1.3, 1], [1.1, -0.9, 1]].map(
    ([x, y, label]) => turn({ x, y, label: /** @type {0 | 1} */ (label) }, MINE));
}

/**
 * Which way a map's second class lies from the centre, in radians, and how clearly, 0 to 1: the hand of a dial.
 * @param {ArrayLike<number>} values of a square grid
 */
export function readHand(values) {
  const n = Math.round(Math.sqrt(values.length)), at = (/** @type {number} */ k) => -EXTENT + (2 * EXTENT * k) / (n - 1);
  let [right, up, all] = [0, 0, 0];
  for (let i = 0; i < values.length; i++) {
    const [x, y] = [at(i % n), at(Math.floor(i / n))];
    if (Math.hypot(x, y) > EXTENT) continue; // a disc: corners would draw the hand to them
    right += (values[i] - 0.5) * x;
    up += (values[i] - 0.5) * y;
    all += 0.5 * Math.hypot(x, y) * 0.637; // what a straight, sure boundary would give
  }
  return { angle: Math.atan2(up, right), length: Math.min(1, Math.hypot(right, up) / all) };
}

/** How far each map is from the mean of all, in probability, over the grid: list. @param {ArrayLike<number>[]} maps */
export function measureDeviations(maps) {
  const n = maps[0].length, far = maps.map(() => 0);
  for (let i = 0; i < n; i++) {
    const mean = maps.reduce((sum, map) => sum + map[i], 0) / maps.length;
    maps.forEach((map, g) => { far[g] += Math.abs(map[i] - mean) / n; });
  }
  return far;
}
