// @ts-check
// What a reader has drawn, and how it becomes an address: pure functions, no page.

/** @typedef {{x: number, y: number, label: 0 | 1}} Point */
/** @typedef {{points: Point[], sd: number, width: number, biases: boolean, seed: number, longer: number}} Drawing */

export const EXTENT = 3; // of both measurements, as in the book's figures
export const SDS = [0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4]; // of the prior
export const WIDTHS = { least: 2, most: 10 }; // hidden units of a layer
export const MOST_POINTS = 200;
export const MOST_LONGER = 4;
const LEVELS = 256; // of a coordinate: three letters hold two of them, and the class
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** The nearest level of a coordinate, 0 to 255. @param {number} value */
function findLevel(value) {
  return Math.min(LEVELS - 1, Math.max(0, Math.round(((value + EXTENT) / (2 * EXTENT)) * (LEVELS - 1))));
}

/** @param {number} level */
function readLevel(level) {
  return (level / (LEVELS - 1)) * 2 * EXTENT - EXTENT;
}

/** A point where an address can say it, so that a link gives the very same numbers. @returns {Point} */
export function snap(/** @type {number} */ x, /** @type {number} */ y, /** @type {0 | 1} */ label) {
  return { x: readLevel(findLevel(x)), y: readLevel(findLevel(y)), label };
}

/** Three letters a point: 1 bit of class, 8 and 8 of place. @param {Point[]} points */
export function writePoints(points) {
  return points.map(({ x, y, label }) => {
    const bits = (label << 16) | (findLevel(x) << 8) | findLevel(y);
    return LETTERS[bits >> 12] + LETTERS[(bits >> 6) & 63] + LETTERS[bits & 63];
  }).join("");
}

/** @returns {Point[] | null} null where the text is none of ours */
export function readPoints(/** @type {string} */ text) {
  if (text.length % 3 || text.length > 3 * MOST_POINTS) return null;
  const points = [];
  for (let k = 0; k < text.length; k += 3) {
    const [a, b, c] = [...text.slice(k, k + 3)].map((letter) => LETTERS.indexOf(letter));
    if (a < 0 || b < 0 || c < 0 || a > 31) return null;
    const bits = (a << 12) | (b << 6) | c;
    const label = /** @type {0 | 1} */ (bits >> 16);
    points.push({ x: readLevel((bits >> 8) & 255), y: readLevel(bits & 255), label });
  }
  return points;
}

/** A drawing as the end of an address, such as `moons=1.5.4.0.0.Qx3…`: seed, width, prior sd, biases, points;
 * `longer` is how often the reader let the chains walk twice as long. */
export function writeHash(/** @type {Drawing} */ { points, sd, width, biases, seed, longer }) {
  return `moons=${seed}.${width}.${SDS.indexOf(sd)}.${Number(biases)}.${longer}.${writePoints(points)}`;
}

/** @returns {Drawing | null} null where the address says no drawing, or a broken one */
export function readHash(/** @type {string} */ hash) {
  const found = /^#?moons=(\d{1,9})\.(\d{1,2})\.([0-8])\.([01])\.([0-4])\.([\w-]*)$/.exec(hash);
  const points = found && readPoints(found[6]);
  if (!found || !points) return null;
  const width = Math.min(WIDTHS.most, Math.max(WIDTHS.least, Number(found[2])));
  const [seed, longer] = [Number(found[1]), Number(found[5])];
  return { points, sd: SDS[Number(found[3])], width, biases: found[4] === "1", seed, longer };
}

/** A row of numbers that looks random and is always the same: no preset may differ between two visits. */
function scatter(/** @type {number} */ k) {
  const wave = (/** @type {number} */ by) => ((Math.sin(by * (k + 1)) * 43758.5453) % 1);
  return [wave(12.9898) + wave(78.233) - wave(37.719), wave(39.346) - wave(11.135) + wave(83.155)];
}

/**
 * Points of one class around places on a curve.
 * @param {(t: number) => number[]} curve
 * @param {number} n
 * @param {0 | 1} label
 * @returns {Point[]}
 */
function scatterAlong(curve, n, label, noise = 0.17, first = 0) {
  return Array.from({ length: n }, (_, k) => {
    const [x, y] = curve(n > 1 ? k / (n - 1) : 0.5), [dx, dy] = scatter(first + k + 100 * label);
    return snap(x + noise * dx, y + noise * dy, label);
  });
}

/** The blue moon, scaled as the book's are; the orange one is its mirror image in the centre. */
const UPPER = (/** @type {number} */ t) => [(Math.cos(Math.PI * t) - 0.5) / 0.87, (Math.sin(Math.PI * t) - 0.25) / 0.5];
const LOWER = (/** @type {number} */ t) => UPPER(t).map((value) => -value);
/** Two moons of n points each; another `first` scatters them otherwise. @param {number} n */
export function scatterMoons(n, first = 0) {
  return [...scatterAlong(UPPER, n, 0, 0.17, first), ...scatterAlong(LOWER, n, 1, 0.17, first)];
}

const turn = (/** @type {number} */ t, /** @type {number} */ r) =>
  [r * Math.cos(2 * Math.PI * t), r * Math.sin(2 * Math.PI * t)];
/** A ring around the middle of a quadrant. @param {number} sx @param {number} sy */
const corner = (sx, sy) => (/** @type {number} */ t) => turn(t, 0.5).map((value, k) => (k ? sy : sx) * (1.4 + value));

/** What a reader can begin with. Circles and crosses need biases: without them p(-x) = 1 - p(x). */
/** @type {Record<string, { name: string, biases: boolean, draw: () => Point[] }>} */
export const PRESETS = {
  moons: { name: "Two moons", biases: false, draw: () => scatterMoons(25) },
  circles: { name: "Circles", biases: true, draw: () => [
    ...scatterAlong((t) => turn(t * 0.95, 2.2), 22, 0), ...scatterAlong((t) => turn(t * 0.9, 0.6), 12, 1),
  ] },
  xor: { name: "Crosswise", biases: true, draw: () => [
    ...scatterAlong(corner(1, 1), 8, 0), ...scatterAlong(corner(-1, -1), 8, 0).map(({ x, y }) => snap(x - 0.1, y, 0)),
    ...scatterAlong(corner(-1, 1), 8, 1), ...scatterAlong(corner(1, -1), 8, 1).map(({ x, y }) => snap(x + 0.1, y, 1)),
  ] },
  one: { name: "One class", biases: false, draw: () => scatterAlong(LOWER, 25, 1) },
};
