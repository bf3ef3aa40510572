// @ts-check
// What is on the paper of the pad, how it is changed, and the small image that a network sees of it: that of
// `bookkit.digits.draw_strokes` and `fit_image`, step by step. Coverage is computed from distances, not by a canvas, so
// that every browser sees the same image. Nothing here knows of a page.

/** @typedef {[number, number]} Point  x to the right, y down, in any unit */
/** @typedef {{ image?: number[], strokes?: Point[][], stranger?: boolean }} Example stranger: it is no digit */

export const STEPS = 12;  // of the keyboard's pen from edge to edge
export const PEN = 0.08;  // as wide, against the pad, as that of the pad in a notebook
const ROOM = 0.75;  // share of the pad that an example fills

export class Drawing {
  constructor() {
    /** @type {Point[][]} */ this.strokes = [];
    /** @type {number[] | null} */ this.image = null;  // an example, shown in place of strokes
    this.isStranger = false;  // whether it is known to be no digit
    this.down = false;
    this.column = this.row = STEPS / 2;
  }

  clear() {
    this.strokes = [];
    this.image = null;
    this.isStranger = false;
    this.down = false;
  }

  /** Put the pen down. @param {Point} point  shares of the pad's width and height */
  press(point) {
    if (this.image) this.clear();
    this.isStranger = false;
    this.strokes.push([point]);
    this.down = true;
  }

  /** @param {Point} point */
  move(point) {
    if (this.down) this.strokes[this.strokes.length - 1].push(point);
  }

  undo() {
    this.strokes.pop();
    this.image = null;
    this.down = false;
  }

  /** Show an example, an image or strokes in any unit. @param {Example} example */
  show({ image, strokes, stranger = false }) {
    this.clear();
    this.isStranger = stranger;
    this.image = image ?? null;
    this.strokes = strokes ? fitPad(strokes) : [];
  }

  /** Move the keyboard's pen, and draw if it is down. @param {number[]} by  columns and rows */
  step([across, down]) {
    const inside = (/** @type {number} */ k) => Math.min(Math.max(k, 0), STEPS);
    [this.column, this.row] = [inside(this.column + across), inside(this.row + down)];
    this.move(this.cursor);
  }

  /** Where the keyboard's pen is. @returns {Point} */
  get cursor() {
    const edge = PEN / 2, place = (/** @type {number} */ step) => edge + (step / STEPS) * (1 - 2 * edge);
    return [place(this.column), place(this.row)];
  }

  /** The image that a network gets to see, or null. @param {number} side @returns {ArrayLike<number> | null} */
  see(side) {
    return this.image ?? (this.strokes.length ? drawStrokes(this.strokes, side) : null);
  }
}

/** Strokes in any unit, in the middle of the pad. @param {Point[][]} strokes @returns {Point[][]} */
function fitPad(strokes) {
  const [xs, ys] = [0, 1].map((axis) => {
    const values = strokes.flat().map((point) => point[axis]);
    return { low: Math.min(...values), high: Math.max(...values) };
  });
  const scale = ROOM / Math.max(xs.high - xs.low, ys.high - ys.low);
  return strokes.map((stroke) => stroke.map(([x, y]) =>
    [0.5 + scale * (x - (xs.low + xs.high) / 2), 0.5 + scale * (y - (ys.low + ys.high) / 2)]));
}

const CANVAS = 280;  // pixels a side on which lines are painted before they are made small
const FILLED = 0.8;  // share of it that the longer side of a drawing takes
const WIDTH = 0.12;  // of the pen, as a share of a drawing's longer side

/**
 * An image of a drawing, as big in it as the handwritten digits are in theirs.
 * @param {Point[][]} strokes
 * @param {number} side  pixels of the image a side
 * @returns {Float64Array}
 */
export function drawStrokes(strokes, side) {
  return fitImage(paint(placeStrokes(strokes), (WIDTH * FILLED * CANVAS) / 2), side);
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
