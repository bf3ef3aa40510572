// @ts-check
// Maps, boundaries and points on a canvas, in the colours of the book's figures (bookkit/plots.py).

import { EXTENT } from "./points.js";

/** What maps are painted with, on a light page and on a dark one, where they are dark too. */
const THEMES = {
  light: {
    ink: "#222222", paper: "#ffffff", rim: "#ffffff", classes: ["#0072B2", "#D55E00"],
    ramps: { probability: ["#5FA8D3", "#FFFFFF", "#F0935C"], doubt: ["#FFFFFF", "#9A7BC8", "#3F007D"] },
  },
  dark: {
    ink: "#F4F4F4", paper: "#14181E", rim: "#14181E", classes: ["#7CC4F2", "#FFA36B"],
    ramps: { probability: ["#1F6FA5", "#14181E", "#B8541C"], doubt: ["#14181E", "#6A4BA3", "#DCCBFF"] },
  },
};
/** @typedef {keyof typeof THEMES} Theme @typedef {"probability" | "doubt"} Kind */
/** @returns {Theme} */
const findTheme = () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light");
/** The colours of the page as it is now. */
export const getColours = () => THEMES[findTheme()];
/** Pixels to the CSS pixel, at most: maps are smooth, and on a phone paint is dear. */
const MOST_DENSE = window.matchMedia("(pointer: coarse)").matches ? 1.25 : 2;
/** @typedef {Float32Array | number[]} Values */

/** A ramp as 256 colours, each as a pixel of a picture has it. @param {string[]} stops */
function mixRamp(stops) {
  const colours = stops.map((stop) => [1, 3, 5].map((k) => parseInt(stop.slice(k, k + 2), 16)));
  const bytes = Uint8ClampedArray.from({ length: 1024 }, (_, i) => {
    if (i % 4 === 3) return 255;
    const place = (Math.floor(i / 4) / 255) * (colours.length - 1), k = Math.min(colours.length - 2, Math.floor(place));
    return colours[k][i % 4] + (place - k) * (colours[k + 1][i % 4] - colours[k][i % 4]);
  });
  return new Uint32Array(bytes.buffer);
}
/** @type {Map<string, Uint32Array>} */
const mixed = new Map();

/** The ramp of a kind of map, on the page as it is now. @param {Kind} kind */
function findRamp(kind) {
  const theme = findTheme(), name = `${theme} ${kind}`;
  const ramp = mixed.get(name) ?? mixRamp(THEMES[theme].ramps[kind]);
  mixed.set(name, ramp);
  return ramp;
}

/** The places of a square grid, first measurement fastest, as `bookkit.data.grid` orders them. @param {number} n */
export function makeGrid(n) {
  const at = (/** @type {number} */ k) => -EXTENT + (2 * EXTENT * k) / (n - 1);
  return Float64Array.from({ length: 2 * n * n }, (_, i) => at(i % 2 ? Math.floor(i / 2 / n) : (i / 2) % n));
}

/** The number of the place of a grid that is nearest. @param {number} n @param {{ x: number, y: number }} place */
export function findPlace(n, { x, y }) {
  const [column, row] = [x, y].map((value) => Math.round(((value + EXTENT) / (2 * EXTENT)) * (n - 1)));
  return Math.min(n - 1, Math.max(0, row)) * n + Math.min(n - 1, Math.max(0, column));
}

/** Give a canvas as many pixels as the screen has under it, within reason. @param {HTMLCanvasElement} canvas */
export function fit(canvas) {
  const density = Math.min(MOST_DENSE, window.devicePixelRatio);
  const side = Math.max(1, Math.round(canvas.clientWidth * density));
  if (canvas.width !== side || canvas.height !== side) canvas.width = canvas.height = side;
  const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  ctx.lineJoin = "round";
  return { ctx, side, scale: side / Math.max(1, canvas.clientWidth) };
}

/** @typedef {{ square: HTMLCanvasElement, small: CanvasRenderingContext2D, image: ImageData,
 *   pixels: Uint32Array }} Square */
/** @type {Map<number, Square>} */
const squares = new Map();

/** A small picture with a pixel for each place, one of each size; it is drawn larger. @param {number} n */
function findSquare(n) {
  const found = squares.get(n);
  if (found) return found;
  const square = Object.assign(document.createElement("canvas"), { width: n, height: n });
  const small = /** @type {CanvasRenderingContext2D} */ (square.getContext("2d", { willReadFrequently: true }));
  const image = small.createImageData(n, n);
  const made = { square, small, image, pixels: new Uint32Array(image.data.buffer) };
  squares.set(n, made);
  return made;
}

/**
 * A value at each place as a smooth picture, over all of a canvas.
 * @param {HTMLCanvasElement} canvas
 * @param {Values | null} values null: paper
 * @param {Kind} kind
 * @param {number} [top] where the ramp ends
 */
export function paintMap(canvas, values, kind, top = 1) {
  const { ctx, side } = fit(canvas);
  if (!values) {
    ctx.fillStyle = getColours().paper;
    ctx.fillRect(0, 0, side, side);
    return;
  }
  const n = Math.round(Math.sqrt(values.length)), ramp = findRamp(kind), scale = 255 / top;
  const { square, small, image, pixels } = findSquare(n);
  for (let row = 0, i = 0; row < n; row++) {
    const from = (n - 1 - row) * n; // the first row of a picture is its upper one
    for (let k = 0; k < n; k++, i++) pixels[i] = ramp[Math.min(255, Math.max(0, Math.round(scale * values[from + k])))];
  }
  small.putImageData(image, 0, 0);
  ctx.imageSmoothingEnabled = true;
  ctx.imageSmoothingQuality = "low";
  ctx.drawImage(square, 0.5, 0.5, n - 1, n - 1, 0, 0, side, side); // outermost places lie on the rim
}

/**
 * Where a map says one half: the ends of short lines, x and y from 0 to 1, y down. In each cell of the grid the line
 * enters and leaves by two of its sides, or by all four.
 * @param {Values} values
 */
export function traceBoundary(values) {
  const n = Math.round(Math.sqrt(values.length)), step = 1 / (n - 1), ends = [];
  for (let j = 0; j + 1 < n; j++) {
    for (let i = 0, at = j * n; i + 1 < n; i++, at++) {
      const a = values[at] - 0.5, b = values[at + 1] - 0.5, c = values[at + n + 1] - 0.5, d = values[at + n] - 0.5;
      if (a < 0 === b < 0 && b < 0 === c < 0 && c < 0 === d < 0) continue;
      if (a < 0 !== b < 0) ends.push((i + a / (a - b)) * step, 1 - j * step);
      if (b < 0 !== c < 0) ends.push((i + 1) * step, 1 - (j + b / (b - c)) * step);
      if (d < 0 !== c < 0) ends.push((i + d / (d - c)) * step, 1 - (j + 1) * step);
      if (a < 0 !== d < 0) ends.push(i * step, 1 - (j + a / (a - d)) * step);
    }
  }
  return Float32Array.from(ends);
}

/**
 * Draw a traced boundary.
 * @param {HTMLCanvasElement} canvas
 * @param {Float32Array} ends
 */
export function paintBoundary(canvas, ends, alpha = 1, wide = 1.2) {
  const { ctx, side, scale } = fit(canvas);
  ctx.beginPath();
  for (let k = 0; k < ends.length; k += 4) {
    ctx.moveTo(ends[k] * side, ends[k + 1] * side);
    ctx.lineTo(ends[k + 2] * side, ends[k + 3] * side);
  }
  ctx.globalAlpha = alpha;
  ctx.strokeStyle = getColours().ink;
  ctx.lineWidth = wide * scale;
  ctx.stroke();
  ctx.globalAlpha = 1;
}

/**
 * A circle for class 0, a triangle for class 1.
 * @param {CanvasRenderingContext2D} ctx
 * @param {number} x @param {number} y
 * @param {0 | 1} label
 * @param {number} size a radius, in pixels
 */
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

/**
 * The points, each with a thin rim of paper; the one that is `held` with a dark ring.
 * @param {HTMLCanvasElement} canvas
 * @param {import("./points.js").Point[]} points
 * @param {number} size a radius, in CSS pixels
 * @param {import("./points.js").Point | null} [held]
 */
export function paintPoints(canvas, points, size, held) {
  const { ctx, side, scale } = fit(canvas), { ink, rim, classes } = getColours();
  for (const point of points) {
    const x = ((point.x + EXTENT) / (2 * EXTENT)) * side, y = (1 - (point.y + EXTENT) / (2 * EXTENT)) * side;
    traceMark(ctx, x, y, point.label, size * scale);
    ctx.fillStyle = classes[point.label];
    ctx.fill();
    ctx.lineWidth = Math.max(0.75, size / 5) * scale;
    ctx.strokeStyle = rim;
    ctx.stroke();
    if (point !== held) continue;
    ctx.beginPath();
    ctx.arc(x, y, 2 * size * scale, 0, 2 * Math.PI);
    ctx.lineWidth = 2 * scale;
    ctx.strokeStyle = ink;
    ctx.stroke();
  }
}

/**
 * A word on a map, with a rim of paper, kept inside of it.
 * @param {HTMLCanvasElement} canvas
 * @param {{ x: number, y: number }} place of its middle
 * @param {string} word
 */
export function paintWord(canvas, place, word) {
  const { ctx, side, scale } = fit(canvas), { ink, paper } = getColours(), edge = 10 * scale;
  ctx.font = `600 ${12 * scale}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  const half = ctx.measureText(word).width / 2 + 4 * scale;
  const keep = (/** @type {number} */ value, /** @type {number} */ rim) => Math.min(side - rim, Math.max(rim, value));
  const x = keep(((place.x + EXTENT) / (2 * EXTENT)) * side, half);
  const y = keep((1 - (place.y + EXTENT) / (2 * EXTENT)) * side, edge);
  ctx.lineWidth = 4 * scale;
  ctx.strokeStyle = paper;
  ctx.strokeText(word, x, y);
  ctx.fillStyle = ink;
  ctx.fillText(word, x, y);
}

/**
 * Where the keyboard is: a cross-hair of ink with a rim of paper, to be seen on any colour.
 * @param {HTMLCanvasElement} canvas
 * @param {{ x: number, y: number }} place
 */
export function paintCursor(canvas, place) {
  const { ctx, side, scale } = fit(canvas), { ink, paper } = getColours(), r = 11 * scale;
  const x = ((place.x + EXTENT) / (2 * EXTENT)) * side, y = (1 - (place.y + EXTENT) / (2 * EXTENT)) * side;
  for (const [colour, wide] of /** @type {[string, number][]} */ ([[paper, 5], [ink, 2]])) {
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
