// @ts-check
/**
 * Mean-field ADVI that arrives: one normal for each unknown, a few draws a step, Adam with a rate that falls to zero.
 *
 * Source: Kucukelbir et al. (2017), Automatic Differentiation Variational Inference, JMLR 18; Kingma and Ba (2015),
 * Adam, ICLR. The start is that of the book's chapter on the flat network.
 */

import { exp, log, logistic, softplus } from "./elementary.js";
import { makeRandom } from "./random.js";

/** @typedef {import("./network.js").Model} Model */
/** @typedef {import("./random.js").Random} Random */

const RATE = 0.1; // of Adam, at first
const [SLOWLY, SQUARES, EPSILON] = [0.9, 0.999, 1e-8]; // Adam's own
const EACH = 16; // draws a step
const RANKED = 4000; // draws behind the ELBO that ranks the starts
const MEASURED = 10000; // and behind the one that is told
const HIGHER = 0.2; // nats that one more climb may gain: no map would show it
const ALIKE = 0.5; // nats between the best start and the next
const HALF_LOG_2PI = 0.9189385332046728;
const FITS = 1000; // the first stream of fits, far from those of chains
export const DRAWS = 2000; // the stream of draws from the best
const RANKS = 2001, MEASURES = 2002; // the streams of ELBOs

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
 * One fit that can be taken step by step. After `steps` its rate is zero; taken further, it climbs once more.
 * @param {{ model: Model, seed: number, start?: number, startSd?: number, steps?: number }} options start: its number
 */
export function makeFit({ model, seed, start = 0, startSd = 0.1, steps = 1500 }) {
  const { size } = model;
  const random = makeRandom(seed, FITS + start);
  const computeLoss = makeLoss(model);
  const place = new Float64Array(2 * size); // means, then what softplus turns into sds
  const mean = place.subarray(0, size);
  const rho = place.subarray(size).fill(log(exp(startSd) - 1));
  for (let i = 0; i < size; i++) mean[i] = random.normal();
  const z = new Float64Array(size);
  const slope = new Float64Array(2 * size);
  const sum = new Float64Array(2 * size);
  const first = new Float64Array(2 * size);
  const second = new Float64Array(2 * size);
  let taken = 0;
  let left = { first: 1, second: 1 }; // what the zeros of the beginning still weigh

  /** One step; its loss, before the step. */
  function step() {
    let loss = 0;
    sum.fill(0);
    for (let k = 0; k < EACH; k++) {
      for (let i = 0; i < size; i++) z[i] = random.normal();
      loss += computeLoss(mean, rho, z, slope) / EACH;
      for (let i = 0; i < 2 * size; i++) sum[i] += slope[i];
    }
    const share = (taken % steps) / steps;
    const rate = RATE * (1 - share) * (1 - share) * (1 + 2 * share);
    left = { first: left.first * SLOWLY, second: left.second * SQUARES };
    for (let i = 0; i < 2 * size; i++) {
      const along = sum[i] / EACH;
      first[i] = SLOWLY * first[i] + (1 - SLOWLY) * along;
      second[i] = SQUARES * second[i] + (1 - SQUARES) * along * along;
      place[i] -= (rate * first[i]) / (1 - left.first) / (Math.sqrt(second[i] / (1 - left.second)) + EPSILON);
    }
    taken += 1;
    return loss;
  }

  return { mean, rho, step };
}

/** @typedef {{ mean: Float64Array, rho: Float64Array }} Place where a fit is */

/**
 * ELBOs of several places at the same draws: means over draws, the error of the first and of its lead over the last.
 * @param {Model} model
 * @param {Random} random
 * @param {number} n draws
 * @param {Place[]} places
 */
export function measureElbo(model, random, n, places) {
  const { size } = model;
  const computeLoss = makeLoss(model);
  const z = new Float64Array(size);
  const slope = new Float64Array(2 * size);
  const sums = new Float64Array(places.length);
  const last = places.length - 1;
  let square = 0;
  let lead = 0;
  for (let k = 0; k < n; k++) {
    for (let i = 0; i < size; i++) z[i] = random.normal();
    const elbo = places.map(({ mean, rho }) => -computeLoss(mean, rho, z, slope));
    for (let j = 0; j < sums.length; j++) sums[j] += elbo[j];
    square += elbo[0] * elbo[0];
    lead += (elbo[0] - elbo[last]) * (elbo[0] - elbo[last]);
  }
  const means = sums.map((sum) => sum / n);
  const spread = (/** @type {number} */ squares, /** @type {number} */ mean) =>
    Math.sqrt(Math.max(0, squares / n - mean * mean) / n);
  return { means, error: spread(square, means[0]), leadError: spread(lead, means[0] - means[last]) };
}

/**
 * @typedef {object} Approximation
 * @property {Float64Array} mean
 * @property {Float64Array} sd
 * @property {number} elbo the mean over ten thousand draws, nats
 * @property {number} error its Monte Carlo error
 * @property {number} gain what a second climb of the best start gained, nats
 * @property {number} gainError its Monte Carlo error
 * @property {number[]} starts the ELBO of each after its climb
 * @property {number} best the number of the start that was kept
 * @property {boolean} stopped whether the second climb gained next to nothing
 * @property {boolean} alike whether another start came as high
 * @property {(random: Random, theta: Float64Array) => void} draw writes a draw
 */

/**
 * Several fits, one after the other and step by step. The one with the highest ELBO climbs once more, which tells
 * whether it had arrived.
 * @param {{ model: Model, seed: number, steps?: number, starts?: number, startSd?: number }} options
 */
export function makeSearch({ model, seed, steps = 1500, starts = 3, startSd = 0.1 }) {
  if (!(steps >= 1 && starts >= 1)) throw new RangeError(`steps=${steps}, starts=${starts}; wanted: at least 1`);
  /** @type {ReturnType<typeof makeFit>[]} */
  const fits = [];
  /** @type {number[]} */
  let ranks = [];
  /** @type {Place | null} */
  let before = null; // the best start, when it had climbed once
  let best = 0;
  let taken = 0;

  function step() {
    const climb = Math.floor(taken / steps);
    if (climb < starts && climb === fits.length) fits.push(makeFit({ model, seed, start: climb, startSd, steps }));
    if (climb === starts && !before) {
      ranks = [...measureElbo(model, makeRandom(seed, RANKS), RANKED, fits).means];
      best = ranks.indexOf(Math.max(...ranks));
      before = { mean: fits[best].mean.slice(), rho: fits[best].rho.slice() };
    }
    fits[climb < starts ? climb : best].step();
    taken += 1;
  }

  /** @returns {Approximation} */
  function finish() {
    const { mean, rho } = fits[best];
    const places = [{ mean, rho }, before ?? { mean, rho }];
    const { means, error, leadError } = measureElbo(model, makeRandom(seed, MEASURES), MEASURED, places);
    const [elbo, gain, sd] = [means[0], means[0] - means[1], rho.map(softplus)];
    const others = ranks.filter((_, k) => k !== best);
    return {
      mean,
      sd,
      elbo,
      error,
      gain,
      gainError: leadError,
      starts: ranks,
      best,
      stopped: gain < HIGHER,
      alike: others.some((other) => ranks[best] - other < ALIKE),
      draw(random, theta) {
        for (let i = 0; i < theta.length; i++) theta[i] = mean[i] + sd[i] * random.normal();
      },
    };
  }

  return {
    step,
    finish,
    get done() {
      return taken === steps * (starts + 1);
    },
    get share() {
      return taken / (steps * (starts + 1));
    },
  };
}

/**
 * The best of several fits, by ELBO.
 * @param {Parameters<typeof makeSearch>[0]} options
 */
export function fitAdvi(options) {
  const search = makeSearch(options);
  while (!search.done) search.step();
  return search.finish();
}
