// @ts-check
// Paper on the screen: the strokes of a pen with the keyboard's cursor, and small images.
import { PEN } from "./drawing.js";

/** @typedef {import("./drawing.js").Drawing} Drawing */

const INK = "#111", CURSOR = "#c2410c", HAIR = 1e-3;  // neighbouring pixels overlap by a hair, or lines would show

/**
 * Show a drawing, and where the keyboard's pen is while that is what draws.
 * @param {HTMLCanvasElement} canvas
 * @param {Drawing} drawing
 * @param {number} side  pixels of an example a side
 */
export function showDrawing(canvas, drawing, side) {
  const context = prepare(canvas);
  if (drawing.image) showPixels(context, drawing.image, side);
  Object.assign(context, { strokeStyle: INK, lineWidth: PEN, lineCap: "round", lineJoin: "round" });
  for (const stroke of drawing.strokes) {
    const [x, y] = stroke[stroke.length - 1];
    context.beginPath();
    stroke.forEach((point) => context.lineTo(...point));
    context.lineTo(x + HAIR, y);  // a dot is a short line
    context.stroke();
  }
  if (canvas.matches(":focus-visible")) showCursor(context, drawing);
}

/** Paper with the pixels of the screen, and a context that measures in its width. @param {HTMLCanvasElement} canvas */
function prepare(canvas) {
  const size = Math.max(Math.round(canvas.clientWidth * devicePixelRatio), 1);
  if (canvas.width !== size) canvas.width = canvas.height = size;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(size, 0, 0, size, 0, 0);
  context.fillStyle = "#fff";
  context.fillRect(0, 0, 1, 1);
  return context;
}

/** A ring, filled while the pen is down. @param {CanvasRenderingContext2D} context @param {Drawing} drawing */
function showCursor(context, { cursor: [x, y], down }) {
  Object.assign(context, { strokeStyle: CURSOR, fillStyle: CURSOR, lineWidth: PEN / 6 });
  context.beginPath();
  context.arc(x, y, PEN / 2, 0, 2 * Math.PI);
  if (down) context.fill();
  else context.stroke();
}

/** @param {CanvasRenderingContext2D} context @param {ArrayLike<number>} image @param {number} side */
function showPixels(context, image, side) {
  for (let k = 0; k < image.length; k++) {
    const [left, top, size] = [(k % side) / side, Math.floor(k / side) / side, 1 / side + HAIR];
    const grey = Math.round(255 * (1 - image[k]));
    context.fillStyle = `rgb(${grey}, ${grey}, ${grey})`;
    context.fillRect(left, top, size, size);
  }
}

/**
 * Show an image, each pixel of it as one of the canvas: the style sheet makes it large.
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayLike<number>} image  ink from 0 to 1; what is missing is paper
 * @param {number} side
 */
export function showImage(canvas, image, side) {
  canvas.width = canvas.height = side;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const pixels = context.createImageData(side, side);
  for (let k = 0; k < side * side; k++) {
    const grey = 255 * (1 - (image[k] ?? 0));
    pixels.data.set([grey, grey, grey, 255], 4 * k);
  }
  context.putImageData(pixels, 0, 0);
}
