// @ts-check
// What pages with a stored posterior share: fetch it when it is near, unpack it, and split the doubt of its draws.

/** @typedef {{ mean: Float64Array, total: number, noise: number, ignorance: number }} Doubt  bits; mean by class */

/**
 * Fetch how a posterior is packed. It lies beside this script, whatever page asks.
 * @param {string} name
 * @returns {Promise<any>}
 */
export async function fetchAbout(name) {
  return (await request(`${name}.json`)).json();
}

/**
 * Fetch the numbers of a posterior.
 * @param {string} name
 * @returns {Promise<ArrayBuffer>}
 */
export async function fetchDraws(name) {
  return (await request(`${name}.bin`)).arrayBuffer();
}

/** @param {string} file */
async function request(file) {
  const answer = await fetch(new URL(file, import.meta.url));
  if (!answer.ok) throw new Error(`${file}: ${answer.status}`);
  return answer;
}

/**
 * Call once, as soon as an element is within a screen of what is seen.
 * @param {Element} element
 * @param {() => void} act
 */
export function whenNear(element, act) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    act();
  }, { rootMargin: "100%" });
  observer.observe(element);
}

/**
 * Numbers that were packed as 16 bits each.
 * @param {ArrayBuffer} buffer
 * @param {number} first  which number to begin with
 * @param {number} count
 * @param {number} step  what one is worth
 */
export function unpackWhole(buffer, first, count, step) {
  return Float64Array.from(new Int16Array(buffer, 2 * first, count), (whole) => whole * step);
}

/** @param {number} p */
const surprise = (p) => (p > 0 ? -p * Math.log2(p) : 0);

/**
 * Doubt of the average, average doubt of the draws, and their difference, as `hbnn.metrics.split_uncertainty`.
 * @param {Float64Array} p  class probabilities, draw by draw
 * @param {number} nClasses
 * @returns {Doubt}
 */
export function splitDoubt(p, nClasses) {
  const nDraws = p.length / nClasses, mean = new Float64Array(nClasses);
  let noise = 0;
  p.forEach((value, k) => {
    mean[k % nClasses] += value / nDraws;
    noise += surprise(value) / nDraws;
  });
  const total = mean.reduce((sum, value) => sum + surprise(value), 0);
  noise = Math.min(noise, total);  // Jensen's inequality, which rounding may miss by a bit
  return { mean, total, noise, ignorance: total - noise };
}

/**
 * Make an element.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/**
 * Make an element of a drawing.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...Node} children
 */
export function makeDrawing(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}
