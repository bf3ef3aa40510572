// @ts-check
// From lines of a pen to the small image that a network sees: `bookkit.digits.draw_strokes` and `fit_image`, step by step.
// Coverage is computed from distances, not by a canvas, so that every browser sees the same image.

/** @typedef {[number, number]} Point  x to the right, y down, in any unit */

const CANVAS = 280;  // pixels a side on which lines are painted before they are made small
const FILLED = 0.8;  // share of it that the longer side of a drawing takes
const PEN = 0.12;  // width of the pen, as a share of a drawing's longer side

/**
 * An image of a drawing, as big in it as the handwritten digits are in theirs.
 * @param {Point[][]} strokes
 * @param {number} side  pixels of the image a side
 * @returns {Float64Array}
 */
export function drawStrokes(strokes, side) {
  return fitImage(paint(placeStrokes(strokes), (PEN * FILLED * CANVAS) / 2), side);
}

/**
 * Strokes in the middle of the canvas, their longer side as long as all drawings have it; a lone dot stays a dot.
 * @param {Point[][]} strokes
 * @returns {Point[][]}
 */
function placeStrokes(strokes) {
  const ends = [0, 1].map((axis) => {
    const values = strokes.flat().map((point) => point[axis]);
    return { low: Math.min(...values), high: Math.max(...values) };
  });
  const scale = (FILLED * CANVAS) / (Math.max(...ends.map(({ low, high }) => high - low)) || 1);
  const place = (/** @type {number} */ value, /** @type {number} */ axis) =>
    (value - (ends[axis].low + ends[axis].high) / 2) * scale + CANVAS / 2;
  return strokes.map((stroke) => stroke.map(([x, y]) => [place(x, 0), place(y, 1)]));
}

/**
 * Ink from 0 to 1 on the canvas, row by row: a pixel is inked as far as it lies under a round pen.
 * @param {Point[][]} strokes
 * @param {number} radius
 */
function paint(strokes, radius) {
  const ink = new Float64Array(CANVAS * CANVAS);
  for (const stroke of strokes) {
    stroke.forEach((end, k) => paintLine(ink, stroke[Math.max(k - 1, 0)], end, radius));
  }
  return ink;
}

/**
 * @param {Float64Array} ink
 * @param {Point} start
 * @param {Point} end
 * @param {number} radius
 */
function paintLine(ink, start, end, radius) {
  const [dx, dy] = [end[0] - start[0], end[1] - start[1]], length = dx * dx + dy * dy;
  const [left, right] = cover(start[0], end[0], radius), [top, bottom] = cover(start[1], end[1], radius);
  for (let row = top; row <= bottom; row++) {
    for (let column = left; column <= right; column++) {
      const [x, y] = [column + 0.5 - start[0], row + 0.5 - start[1]];
      const along = length ? Math.min(Math.max((x * dx + y * dy) / length, 0), 1) : 0;
      const inked = Math.min(radius + 0.5 - Math.hypot(x - along * dx, y - along * dy), 1);
      const place = row * CANVAS + column;
      if (inked > ink[place]) ink[place] = inked;
    }
  }
}

/**
 * First and last pixel that a line may touch along one axis.
 * @param {number} a
 * @param {number} b
 * @param {number} radius
 */
function cover(a, b, radius) {
  return [Math.max(Math.floor(Math.min(a, b) - radius - 1), 0),
    Math.min(Math.ceil(Math.max(a, b) + radius + 1), CANVAS - 1)];
}

/**
 * Cut the ink out, put it into the middle of a square, and average over blocks.
 * @param {Float64Array} ink  (CANVAS, CANVAS)
 * @param {number} side
 */
function fitImage(ink, side) {
  let [top, bottom, left, right] = [CANVAS, -1, CANVAS, -1];
  ink.forEach((value, place) => {
    if (value <= 0.5) return;
    const row = Math.floor(place / CANVAS), column = place % CANVAS;
    [top, bottom] = [Math.min(top, row), Math.max(bottom, row)];
    [left, right] = [Math.min(left, column), Math.max(right, column)];
  });
  const [high, wide] = [bottom - top + 1, right - left + 1], square = Math.max(high, wide);
  const [above, before] = [Math.floor((square - high) / 2), Math.floor((square - wide) / 2)];
  const image = new Float64Array(side * side);
  const shareAll = (/** @type {number} */ count, /** @type {number} */ shift) =>
    Array.from({ length: count }, (_, k) => share(k + shift, square, side));
  const [rows, columns] = [shareAll(high, above), shareAll(wide, before)];
  rows.forEach((inRows, i) => columns.forEach((inColumns, j) => {
    const value = ink[(top + i) * CANVAS + left + j];
    if (value) for (const [r, a] of inRows) for (const [c, b] of inColumns) image[r * side + c] += a * b * value;
  }));
  return image;
}

/**
 * The blocks that a pixel lies in, and its share in each: a side need not be a multiple of the number of blocks.
 * @param {number} pixel
 * @param {number} square  pixels a side
 * @param {number} side  blocks a side
 * @returns {[number, number][]}
 */
function share(pixel, square, side) {
  const first = Math.floor((pixel * side) / square), cut = (first + 1) * square, end = (pixel + 1) * side;
  if (end <= cut) return [[first, side / square]];
  return [[first, (cut - pixel * side) / square], [first + 1, (end - cut) / square]];
}
