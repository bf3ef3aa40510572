// @ts-check
// A canvas to draw points on: by mouse, by finger, or by a cursor that the arrow keys move and that is spoken.

import { EXTENT, MOST_POINTS, snap } from "./points.js";

/** @typedef {import("./points.js").Point} Point */
/**
 * What a pad asks of the page around it.
 * @typedef {object} Owner
 * @property {string[]} names  of the classes
 * @property {Point[]} points  the pad changes them in place
 * @property {() => 0 | 1} chosen  the class of the next point
 * @property {() => boolean} [movesAll]  whether a point takes its whole class along
 * @property {() => void} onChange  points were put, moved or removed
 * @property {() => void} onLook  cursor, held point or focus changed: paint again
 * @property {(text: string) => void} say
 * @property {(place: {x: number, y: number}) => string} describe  what the networks say there
 * @property {(place: {x: number, y: number} | null) => void} onHover
 * @property {(label: 0 | 1) => void} choose
 */

const STEPS = 12; // of the keyboard's cursor from one side to the other: columns and rows 1 to 13
/** @type {Record<string, number>} */
const REACH = { mouse: 11, pen: 14, touch: 22 }; // CSS pixels from a point that still mean it
const STILL = 6; // CSS pixels of movement that are none
export const CLASS_NAMES = ["calm", "attack"];

/** @typedef {{ x: number, y: number }} Place @typedef {{ cursor: Place | null, held: Point | null }} State */

/**
 * Let a canvas be drawn on. Returns what the painter needs: the cursor (null without focus) and the held point.
 * @param {HTMLCanvasElement} canvas
 * @param {Owner} owner
 * @param {HTMLCanvasElement[]} [others] maps of the same points, for a mouse and a finger as well
 */
export function startPad(canvas, owner, others = []) {
  /** @type {State} */
  const state = { cursor: null, held: null };
  for (const each of [canvas, ...others]) listenToPointers(each, owner, state);
  listenToKeys(canvas, owner, state);
  return state;
}

/**
 * Where an event is, in measurements, and how many CSS pixels one is.
 * @param {HTMLCanvasElement} canvas
 * @param {{ clientX: number, clientY: number }} event
 */
function locate(canvas, event) {
  const box = canvas.getBoundingClientRect();
  const [right, down] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  return { x: EXTENT * (2 * right - 1), y: EXTENT * (1 - 2 * down), pixels: box.width / (2 * EXTENT) };
}

/** The nearest point within reach. @param {Point[]} points @param {Place} place @param {number} reach */
function findPoint(points, place, reach) {
  const far = (/** @type {Point} */ point) => Math.hypot(point.x - place.x, point.y - place.y);
  return points.filter((point) => far(point) <= reach).sort((a, b) => far(a) - far(b))[0];
}

/** Put a point, if there is room; returns it. @param {Owner} owner @param {Place} place */
function putPoint(owner, place) {
  if (owner.points.length >= MOST_POINTS) {
    owner.say(`${MOST_POINTS} points are the most`);
    return null;
  }
  const point = snap(place.x, place.y, owner.chosen());
  owner.points.push(point);
  owner.onChange();
  return point;
}

/** @param {Owner} owner @param {Point} point */
function removePoint(owner, point) {
  owner.points.splice(owner.points.indexOf(point), 1);
  owner.onChange();
}

/** Move a point, or its whole class by as much. @param {Owner} owner @param {Point} point @param {Place} place */
function movePoint(owner, point, place) {
  const to = snap(place.x, place.y, point.label), [dx, dy] = [to.x - point.x, to.y - point.y];
  const moved = owner.movesAll?.() ? owner.points.filter(({ label }) => label === point.label) : [point];
  for (const each of moved) Object.assign(each, snap(each.x + dx, each.y + dy, each.label));
  owner.onChange();
}

/**
 * A press on a point drags it, or removes it when it stays where it is. A press beside all points puts one: with a
 * mouse at once, so that it can be dragged on; with a finger when it lifts, so that a swipe still scrolls the page.
 * @param {HTMLCanvasElement} canvas
 * @param {Owner} owner
 * @param {State} state
 */
function listenToPointers(canvas, owner, state) {
  /** @type {{id: number, x: number, y: number, point: Point | null, isNew: boolean, moved: boolean} | null} */
  let press = null;
  /** How far a press reaches, in measurements. @param {string} kind @param {{ pixels: number }} place */
  const measureReach = (kind, { pixels }) => (REACH[kind] ?? REACH.mouse) / pixels;

  canvas.addEventListener("touchstart", (event) => {
    const place = locate(canvas, event.touches[0]);
    const isPoint = findPoint(owner.points, place, REACH.touch / place.pixels);
    if (isPoint && event.cancelable) event.preventDefault(); // drag, do not scroll; a scroll goes on
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || press) return;
    const place = locate(canvas, event), isTouch = event.pointerType === "touch";
    const old = findPoint(owner.points, place, measureReach(event.pointerType, place)) ?? null;
    const point = old ?? (isTouch ? null : putPoint(owner, place));
    press = { id: event.pointerId, x: event.clientX, y: event.clientY, point, isNew: !old, moved: false };
    state.held = point;
    try { canvas.setPointerCapture(event.pointerId); } catch { /* the pointer is gone already */ }
    owner.onLook();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse") owner.onHover(locate(canvas, event));
    if (!press || press.id !== event.pointerId) return;
    press.moved ||= Math.hypot(event.clientX - press.x, event.clientY - press.y) > STILL;
    if (press.moved && press.point) movePoint(owner, press.point, locate(canvas, event));
  });
  const release = (/** @type {PointerEvent} */ event, /** @type {boolean} */ counts) => {
    if (!press || press.id !== event.pointerId) return;
    const { point, isNew, moved } = press;
    press = null;
    state.held = null;
    if (counts && !moved && !point) putPoint(owner, locate(canvas, event));
    else if (counts && !moved && point && !isNew) removePoint(owner, point);
    owner.onLook();
  };
  canvas.addEventListener("pointerup", (event) => release(event, true));
  canvas.addEventListener("pointercancel", (event) => release(event, false));
  canvas.addEventListener("pointerleave", () => owner.onHover(null));
}

/** @type {Record<string, number[]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/** Column and row of a place, from 1 at the lower left. @param {Place} place */
function nameCell({ x, y }) {
  const number = (/** @type {number} */ value) => Math.round(((value + EXTENT) / (2 * EXTENT)) * STEPS) + 1;
  return `column ${number(x)}, row ${number(y)}`;
}

/**
 * Arrows move the cursor, Enter or Space puts or removes, M picks up and sets down, C changes the class.
 * @param {HTMLCanvasElement} canvas
 * @param {Owner} owner
 * @param {State} state
 */
function listenToKeys(canvas, owner, state) {
  let cursor = { x: 0, y: 0 };
  const step = (2 * EXTENT) / STEPS, here = () => findPoint(owner.points, cursor, 0.49 * step);
  const tell = (what = "") => {
    const point = here(), there = point ? `${owner.names[point.label]} here, ` : "";
    owner.say([what, `${nameCell(cursor)}: ${there}${owner.describe(cursor)}`].filter(Boolean).join(". "));
  };
  const keep = (/** @type {number} */ value) => Math.min(EXTENT, Math.max(-EXTENT, value));
  const move = (/** @type {number[]} */ [dx, dy]) => {
    cursor = { x: keep(cursor.x + dx * step), y: keep(cursor.y + dy * step) };
    state.cursor = cursor;
    if (state.held) movePoint(owner, state.held, cursor);
    tell();
  };
  const toggle = () => {
    const point = here();
    if (point) removePoint(owner, point);
    else putPoint(owner, cursor);
    tell(point ? "Removed" : `Put ${owner.names[owner.chosen()]}`);
  };
  const carry = () => {
    const point = state.held ? null : here() ?? null;
    const said = state.held ? "Set down" : point ? "Picked up, arrows move it" : "No point here";
    state.held = point;
    tell(said);
  };
  const remove = () => { if (here()) toggle(); };
  /** @type {Record<string, () => void>} */
  const actions = {
    Enter: toggle, " ": toggle, m: carry, Delete: remove, Backspace: remove,
    c: () => {
      owner.choose(owner.chosen() === 0 ? 1 : 0);
      owner.say(`Next point: ${owner.names[owner.chosen()]}`);
    },
    Escape: () => { state.held = null; },
  };
  canvas.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key], action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!arrow && !action) return;
    event.preventDefault();
    if (arrow) move(arrow);
    else action();
    owner.onLook();
  });
  canvas.addEventListener("focus", () => {
    if (!canvas.matches(":focus-visible")) return; // a mouse needs no cursor
    state.cursor = cursor;
    owner.onLook();
  });
  canvas.addEventListener("blur", () => {
    state.cursor = state.held = null;
    owner.onLook();
  });
}
