// @ts-check
// Maps, boundaries and points on a canvas, in the colours of the book's figures (bnn/plots.py).

import { EXTENT } from "./points.js";

export const CLASS_COLOURS = ["#0072B2", "#D55E00"];
const INK = "#222222", PAPER = "#ffffff";
/** @type {Record<string, string[]>} */
const RAMPS = {
  probability: ["#5FA8D3", "#FFFFFF", "#F0935C"],
  doubt: ["#FFFFFF", "#9A7BC8", "#3F007D"],
};
/** @typedef {Float32Array | number[]} Values */

/** A ramp as 256 colours, red, green and blue in turn. @param {string[]} stops */
function mixRamp(stops) {
  const colours = stops.map((stop) => [1, 3, 5].map((k) => parseInt(stop.slice(k, k + 2), 16)));
  return Uint8ClampedArray.from({ length: 768 }, (_, i) => {
    const place = (Math.floor(i / 3) / 255) * (colours.length - 1), k = Math.min(colours.length - 2, Math.floor(place));
    return colours[k][i % 3] + (place - k) * (colours[k + 1][i % 3] - colours[k][i % 3]);
  });
}
const MIXED = Object.fromEntries(Object.entries(RAMPS).map(([kind, stops]) => [kind, mixRamp(stops)]));

/** The places of a square grid, first measurement fastest, as `bnn.data.grid` orders them. @param {number} n */
export function makeGrid(n) {
  const at = (/** @type {number} */ k) => -EXTENT + (2 * EXTENT * k) / (n - 1);
  return Float64Array.from({ length: 2 * n * n }, (_, i) => at(i % 2 ? Math.floor(i / 2 / n) : (i / 2) % n));
}

/** Give a canvas as many pixels as the screen has under it, at most two to the CSS pixel. */
export function fit(/** @type {HTMLCanvasElement} */ canvas) {
  const side = Math.max(1, Math.round(canvas.clientWidth * Math.min(2, window.devicePixelRatio)));
  if (canvas.width !== side || canvas.height !== side) canvas.width = canvas.height = side;
  const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  ctx.lineJoin = "round";
  return { ctx, side, scale: side / Math.max(1, canvas.clientWidth) };
}

/** @type {Map<number, HTMLCanvasElement>} */
const squares = new Map(); // one of each size: a small picture with a pixel for each place, drawn larger

/** A value at each place as a smooth picture, over all of a canvas; `top` is where the ramp ends. */
export function paintMap(/** @type {HTMLCanvasElement} */ canvas, /** @type {Values | null} */ values, kind, top = 1) {
  const { ctx, side } = fit(canvas);
  if (!values) {
    ctx.fillStyle = PAPER;
    ctx.fillRect(0, 0, side, side);
    return;
  }
  const n = Math.round(Math.sqrt(values.length)), ramp = MIXED[kind];
  const square = squares.get(n) ?? Object.assign(document.createElement("canvas"), { width: n, height: n });
  squares.set(n, square);
  const small = /** @type {CanvasRenderingContext2D} */ (square.getContext("2d"));
  const image = small.createImageData(n, n);
  for (let row = 0; row < n; row++) {
    for (let k = 0; k < n; k++) {
      const from = 3 * Math.min(255, Math.max(0, Math.round((255 * values[(n - 1 - row) * n + k]) / top)));
      image.data.set([ramp[from], ramp[from + 1], ramp[from + 2], 255], 4 * (row * n + k));
    }
  }
  small.putImageData(image, 0, 0);
  ctx.imageSmoothingEnabled = true;
  ctx.imageSmoothingQuality = "high";
  ctx.drawImage(square, 0.5, 0.5, n - 1, n - 1, 0, 0, side, side); // outermost places lie on the rim
}

/** Where a map says one half: the ends of short lines, x and y from 0 to 1, y down. @returns {Float32Array} */
export function traceBoundary(/** @type {Values} */ values, level = 0.5) {
  const n = Math.round(Math.sqrt(values.length)), ends = [];
  const cross = (/** @type {number} */ a, /** @type {number} */ b) => (level - a) / (b - a);
  for (let j = 0; j + 1 < n; j++) {
    for (let i = 0; i + 1 < n; i++) {
      const [a, b, c, d] = [j * n + i, j * n + i + 1, (j + 1) * n + i + 1, (j + 1) * n + i].map((k) => values[k]);
      const met = [];
      if (a < level !== b < level) met.push(i + cross(a, b), j);
      if (b < level !== c < level) met.push(i + 1, j + cross(b, c));
      if (d < level !== c < level) met.push(i + cross(d, c), j + 1);
      if (a < level !== d < level) met.push(i, j + cross(a, d));
      for (let k = 0; k + 3 < met.length; k += 4) {
        ends.push(met[k] / (n - 1), 1 - met[k + 1] / (n - 1), met[k + 2] / (n - 1), 1 - met[k + 3] / (n - 1));
      }
    }
  }
  return Float32Array.from(ends);
}

/** Draw a traced boundary. */
export function paintBoundary(/** @type {HTMLCanvasElement} */ canvas, /** @type {Float32Array} */ ends, alpha = 1, wide = 1.2) {
  const { ctx, side, scale } = fit(canvas);
  ctx.beginPath();
  for (let k = 0; k < ends.length; k += 4) {
    ctx.moveTo(ends[k] * side, ends[k + 1] * side);
    ctx.lineTo(ends[k + 2] * side, ends[k + 3] * side);
  }
  ctx.globalAlpha = alpha;
  ctx.strokeStyle = INK;
  ctx.lineWidth = wide * scale;
  ctx.stroke();
  ctx.globalAlpha = 1;
}

/** A circle for class 0, a triangle for class 1. `size` is a radius in CSS pixels. */
function traceMark(ctx, x, y, label, size) {
  ctx.beginPath();
  if (label === 0) ctx.arc(x, y, size, 0, 2 * Math.PI);
  else {
    const r = 1.3 * size;
    ctx.moveTo(x, y - r);
    ctx.lineTo(x + 0.866 * r, y + 0.5 * r);
    ctx.lineTo(x - 0.866 * r, y + 0.5 * r);
    ctx.closePath();
  }
}

/** The points, each with a thin white rim; the one that is `held` with a dark ring. */
export function paintPoints(/** @type {HTMLCanvasElement} */ canvas, points, size = 5, held = null) {
  const { ctx, side, scale } = fit(canvas);
  for (const point of points) {
    const x = ((point.x + EXTENT) / (2 * EXTENT)) * side, y = (1 - (point.y + EXTENT) / (2 * EXTENT)) * side;
    traceMark(ctx, x, y, point.label, size * scale);
    ctx.fillStyle = CLASS_COLOURS[point.label];
    ctx.fill();
    ctx.lineWidth = Math.max(0.75, size / 5) * scale;
    ctx.strokeStyle = PAPER;
    ctx.stroke();
    if (point !== held) continue;
    ctx.beginPath();
    ctx.arc(x, y, 2 * size * scale, 0, 2 * Math.PI);
    ctx.lineWidth = 2 * scale;
    ctx.strokeStyle = INK;
    ctx.stroke();
  }
}

/** Where the keyboard is: a dark cross-hair with a white rim, to be seen on any colour. */
export function paintCursor(/** @type {HTMLCanvasElement} */ canvas, place) {
  const { ctx, side, scale } = fit(canvas), r = 11 * scale;
  const x = ((place.x + EXTENT) / (2 * EXTENT)) * side, y = (1 - (place.y + EXTENT) / (2 * EXTENT)) * side;
  for (const [colour, wide] of /** @type {[string, number][]} */ ([[PAPER, 5], [INK, 2]])) {
    ctx.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      ctx.moveTo(x + 0.55 * r * dx, y + 0.55 * r * dy);
      ctx.lineTo(x + 1.5 * r * dx, y + 1.5 * r * dy);
    }
    ctx.strokeStyle = colour;
    ctx.lineWidth = wide * scale;
    ctx.stroke();
  }
}
