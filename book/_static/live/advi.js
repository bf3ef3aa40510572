// @ts-check
/**
 * Mean-field ADVI as in the book: one normal for each unknown, one draw a step, PyMC's windowed Adagrad.
 *
 * Source: Kucukelbir et al. (2017), Automatic Differentiation Variational Inference, JMLR 18. The optimiser is
 * pm.adagrad_window with its defaults, the start that of the book's chapter on the flat network.
 */

import { exp, log, logistic, softplus } from "./elementary.js";
import { makeRandom } from "./random.js";

/** @typedef {import("./network.js").Model} Model */
/** @typedef {import("./random.js").Random} Random */

const RATE = 0.001;
const EPSILON = 0.1;
const WINDOW = 10; // gradients whose squares are summed
const JUDGED = 1000; // last steps, whose mean loss ranks the starts
const HALF_LOG_2PI = 0.9189385332046728;
const FITS = 1000; // the first stream of fits, far from those of chains
export const DRAWS = 2000; // the stream of draws from the best

/**
 * The negative ELBO at one draw, mean + sd * z with sd = softplus(rho), as PyMC estimates it; slopes of mean and rho
 * are written. The entropy's own slope is exact: it does not depend on z.
 * @param {Model} model
 */
export function makeLoss(model) {
  const { size } = model;
  const theta = new Float64Array(size);
  const gradient = new Float64Array(size);

  /**
   * @param {Float64Array} mean
   * @param {Float64Array} rho
   * @param {Float64Array} z
   * @param {Float64Array} slope of mean, then of rho
   */
  return function computeLoss(mean, rho, z, slope) {
    let logq = -size * HALF_LOG_2PI;
    for (let i = 0; i < size; i++) {
      const sd = softplus(rho[i]);
      theta[i] = mean[i] + sd * z[i];
      logq -= 0.5 * z[i] * z[i] + log(sd);
      slope[size + i] = -1 / sd;
    }
    const logp = model.logDensity(theta, gradient);
    for (let i = 0; i < size; i++) {
      slope[i] = -gradient[i];
      slope[size + i] = (slope[size + i] - gradient[i] * z[i]) * logistic(rho[i]);
    }
    return logq - logp;
  };
}

/**
 * One fit that can be taken step by step.
 * @param {{ model: Model, seed: number, start?: number, startSd?: number }} options start: its number
 */
export function makeFit({ model, seed, start = 0, startSd = 0.1 }) {
  const { size } = model;
  const random = makeRandom(seed, FITS + start);
  const computeLoss = makeLoss(model);
  const mean = Float64Array.from({ length: size }, () => random.normal());
  const rho = new Float64Array(size).fill(log(exp(startSd) - 1));
  const z = new Float64Array(size);
  const slope = new Float64Array(2 * size);
  const squares = new Float64Array(2 * size * WINDOW);
  let taken = 0;

  /** One step; its loss, before the step. */
  function step() {
    for (let i = 0; i < size; i++) z[i] = random.normal();
    const loss = computeLoss(mean, rho, z, slope);
    const place = taken % WINDOW;
    for (let i = 0, at = 0; i < 2 * size; i++, at += WINDOW) {
      squares[at + place] = slope[i] * slope[i];
      let sum = EPSILON;
      for (let k = 0; k < WINDOW; k++) sum += squares[at + k];
      const move = (RATE * slope[i]) / Math.sqrt(sum);
      if (i < size) mean[i] -= move;
      else rho[i - size] -= move;
    }
    taken += 1;
    return loss;
  }

  return { mean, rho, step };
}

/**
 * @typedef {object} Approximation
 * @property {Float64Array} mean
 * @property {Float64Array} sd
 * @property {Float64Array} elbo estimated at each step of the best start, nats
 * @property {number[]} losses of all starts: the mean of the last thousand steps
 * @property {number} best the number of the start that was kept
 * @property {(random: Random, theta: Float64Array) => void} draw writes a draw
 */

/**
 * Several fits, one after the other and step by step, of which the one with the least loss is kept.
 * @param {{ model: Model, seed: number, steps?: number, starts?: number, startSd?: number }} options
 */
export function makeSearch({ model, seed, steps = 30000, starts = 3, startSd = 0.1 }) {
  if (!(steps >= 1 && starts >= 1)) throw new RangeError(`steps=${steps}, starts=${starts}; wanted: at least 1`);
  /** @type {(ReturnType<typeof makeFit> & { elbo: Float64Array, loss: number })[]} */
  const fits = [];
  let taken = 0;

  function step() {
    const i = taken % steps;
    if (i === 0) {
      const fit = makeFit({ model, seed, start: fits.length, startSd });
      fits.push({ ...fit, elbo: new Float64Array(steps), loss: 0 });
    }
    const fit = fits[fits.length - 1];
    const loss = fit.step();
    fit.elbo[i] = -loss;
    if (i >= steps - JUDGED) fit.loss += loss / Math.min(steps, JUDGED);
    taken += 1;
  }

  /** @returns {Approximation} */
  function finish() {
    const losses = fits.map(({ loss }) => loss);
    const best = losses.indexOf(Math.min(...losses));
    const { mean, elbo, rho } = fits[best];
    const sd = rho.map(softplus);
    return {
      mean,
      sd,
      elbo,
      losses,
      best,
      draw(random, theta) {
        for (let i = 0; i < theta.length; i++) theta[i] = mean[i] + sd[i] * random.normal();
      },
    };
  }

  return {
    step,
    finish,
    get done() {
      return taken === steps * starts;
    },
    get share() {
      return taken / (steps * starts);
    },
  };
}

/**
 * The best of several fits, by loss.
 * @param {Parameters<typeof makeSearch>[0]} options
 */
export function fitAdvi(options) {
  const search = makeSearch(options);
  while (!search.done) search.step();
  return search.finish();
}
