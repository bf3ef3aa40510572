// @ts-check
// What is on the paper of the pad, and how it is changed. Nothing here knows of a page.
import { drawStrokes } from "./ink.js";

/** @typedef {import("./ink.js").Point} Point */
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
