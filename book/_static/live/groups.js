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

/** Each place of a disc in a grid of n by n, and where it is: x, y. @param {number} n */
function listDisc(n) {
  const at = (/** @type {number} */ k) => -EXTENT + (2 * EXTENT * k) / (n - 1), disc = [];
  for (let i = 0; i < n * n; i++) {
    const x = at(i % n), y = at(Math.floor(i / n));
    if (x * x + y * y <= EXTENT * EXTENT) disc.push({ i, x, y }); // corners would draw the hand to them
  }
  const far = disc.reduce((sum, { x, y }) => sum + Math.sqrt(x * x + y * y), 0);
  return { disc, most: far / Math.PI }; // what a straight, sure boundary gives
}
/** @type {Map<number, ReturnType<typeof listDisc>>} */
const discs = new Map();

/**
 * Which way a map's second class lies from the centre, in radians, and how clearly, 0 to 1: the hand of a dial.
 * @param {ArrayLike<number>} values of a square grid
 */
export function readHand(values) {
  const n = Math.round(Math.sqrt(values.length)), { disc, most } = discs.get(n) ?? listDisc(n);
  if (!discs.has(n)) discs.set(n, { disc, most });
  let right = 0, up = 0;
  for (const { i, x, y } of disc) {
    right += (values[i] - 0.5) * x;
    up += (values[i] - 0.5) * y;
  }
  return { angle: Math.atan2(up, right), length: Math.min(1, Math.sqrt(right * right + up * up) / most) };
}

/** How far each map is from the mean of all, in probability, over the grid: list. @param {ArrayLike<number>[]} maps */
export function measureDeviations(maps) {
  const n = maps[0].length, far = maps.map(() => 0);
  for (let i = 0; i < n; i++) {
    let mean = 0;
    for (const map of maps) mean += map[i] / maps.length;
    for (let g = 0; g < maps.length; g++) far[g] += Math.abs(maps[g][i] - mean) / n;
  }
  return far;
}
