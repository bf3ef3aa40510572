// @ts-check
/**
 * Did the chains agree? ArviZ's R-hat and effective sample sizes, and the book's verdict (hbnn.diagnostics).
 *
 * Draws of a quantity are an array of chains, each a Float64Array of the same length.
 *
 * Source: Vehtari et al. (2021), Rank-Normalization, Folding, and Localization, Bayesian Analysis 16.
 */

import { log } from "./elementary.js";

/** @typedef {Float64Array[]} Draws */

export const ESS_LIMIT = 400; // draws
export const BFMI_LIMIT = 0.3;
export const DIVERGENT_LIMIT = 0.001; // share of draws

/**
 * Rank-normalised split R-hat, of the bulk or folded, whichever is greater. NaN where nothing can be said.
 * @param {Draws} draws
 */
export function rhat(draws) {
  if (draws.length < 2 || !isJudged(draws)) return NaN;
  const halves = split(draws);
  const bulk = computeRhat(rankNormalise(halves));
  const folded = computeRhat(rankNormalise(fold(halves)));
  return folded > bulk ? folded : bulk;
}

/** Effective draws for the middle of a distribution. @param {Draws} draws */
export function essBulk(draws) {
  return isJudged(draws) ? computeEss(rankNormalise(split(draws))) : NaN;
}

/** Effective draws for its spread, the distance from the median. @param {Draws} draws */
export function essSpread(draws) {
  return isJudged(draws) ? computeEss(rankNormalise(fold(split(draws)))) : NaN;
}

/** Effective draws for its outer 5 % on either side. @param {Draws} draws */
export function essTail(draws) {
  if (!isJudged(draws)) return NaN;
  const sorted = sort(draws);
  const sizes = [0.05, 0.95].map((share) => {
    const limit = quantile(sorted, share);
    return computeEss(split(draws.map((chain) => chain.map((x) => (x <= limit ? 1 : 0)))));
  });
  return Math.min(...sizes);
}

/** Monte Carlo standard error of the mean. @param {Draws} draws */
export function mcse(draws) {
  if (!isJudged(draws)) return NaN;
  const all = join(draws);
  return Math.sqrt(computeVariance(all) / computeEss(split(draws)));
}

/** E-BFMI of a chain: how much its energy moves from draw to draw (Betancourt 2016). @param {Float64Array} energy */
export function bfmi(energy) {
  let moved = 0;
  for (let i = 1; i < energy.length; i++) moved += (energy[i] - energy[i - 1]) * (energy[i] - energy[i - 1]);
  return moved / (energy.length - 1) / computeVariance(energy);
}

/**
 * @typedef {object} Verdict
 * @property {boolean} converged whether the draws may be used
 * @property {number} rhat the greatest, which judges nothing: effective draws count what chains disagree about
 * @property {number} ess the least, of the bulk
 * @property {number} essSpread the least, of the spread
 * @property {number} essTail the least, of the tails
 * @property {string} rhatAt @property {string} essAt @property {string} essSpreadAt @property {string} essTailAt the
 *   quantities that have them
 * @property {number} divergences
 * @property {number} move how far leaving divergent draws out moves a mean at most, in units of its error
 * @property {boolean} explained whether the divergences can be lived with
 * @property {number} bfmi the least E-BFMI of a chain
 * @property {string[]} constant quantities that are one constant and were not judged
 * @property {string[]} reasons what is wrong, by key: "chains", "ess", "essSpread", "essTail",
 *   "divergences", "bfmi", "constant"
 */

/**
 * The book's verdict: more than 400 effective draws of every quantity, in bulk, spread and tails, divergences explained,
 * E-BFMI of every chain at least 0.3. Divergences are explained where they are below 0.1 % of the draws, and leaving them out
 * moves no mean by more than its Monte Carlo error.
 * @param {{ quantities: Record<string, Draws>, divergent: ArrayLike<number | boolean>[], energy: Float64Array[] }} run
 *   divergent, energy: of each chain's draws
 * @returns {Verdict}
 */
export function verdict({ quantities, divergent, energy }) {
  const nDraws = energy.length * energy[0].length;
  const n = divergent.reduce((sum, chain) => sum + Array.from(chain).filter(Boolean).length, 0);
  const found = {
    converged: false, rhat: NaN, ess: NaN, essSpread: NaN, essTail: NaN,
    rhatAt: "", essAt: "", essSpreadAt: "", essTailAt: "",
    divergences: n, move: 0, explained: false, bfmi: NaN,
    constant: /** @type {string[]} */ ([]), reasons: /** @type {string[]} */ ([]),
  }; // prettier-ignore
  if (energy.length < 2 || energy[0].length < 4) return { ...found, move: NaN, reasons: ["chains"] };
  for (const [name, draws] of Object.entries(quantities)) {
    const r = rhat(draws);
    if (r !== r) {
      found.constant.push(name);
      continue;
    }
    const [bulk, spread, tail] = [essBulk(draws), essSpread(draws), essTail(draws)];
    // each comparison is true of NaN as well, which starts them, and which no ESS may hide
    if (!(r <= found.rhat)) [found.rhat, found.rhatAt] = [r, name];
    if (!(bulk >= found.ess)) [found.ess, found.essAt] = [bulk, name];
    if (!(spread >= found.essSpread)) [found.essSpread, found.essSpreadAt] = [spread, name];
    if (!(tail >= found.essTail)) [found.essTail, found.essTailAt] = [tail, name];
    if (n > 0 && n < nDraws) found.move = Math.max(found.move, measureMove(draws, divergent));
  }
  if (n === nDraws) found.move = Infinity;
  found.explained = n === 0 || (n / nDraws < DIVERGENT_LIMIT && found.move <= 1);
  found.bfmi = Math.min(...energy.map(bfmi));
  found.reasons = findReasons(found);
  found.converged = found.reasons.length === 0;
  return found;
}

/** @param {Verdict} found */
function findReasons(found) {
  if (found.rhat !== found.rhat) return ["constant"];
  const reasons = [];
  if (!(found.ess > ESS_LIMIT)) reasons.push("ess");
  if (!(found.essSpread > ESS_LIMIT)) reasons.push("essSpread");
  if (!(found.essTail > ESS_LIMIT)) reasons.push("essTail");
  if (!found.explained) reasons.push("divergences");
  if (!(found.bfmi >= BFMI_LIMIT)) reasons.push("bfmi");
  return reasons;
}

/**
 * How far the mean moves without divergent draws, in units of its error.
 * @param {Draws} draws
 * @param {ArrayLike<number | boolean>[]} divergent
 */
function measureMove(draws, divergent) {
  let all = 0;
  let kept = 0;
  let nKept = 0;
  draws.forEach((chain, c) =>
    chain.forEach((x, i) => {
      all += x;
      if (!divergent[c][i]) {
        kept += x;
        nKept += 1;
      }
    }),
  );
  const error = mcse(draws);
  return error > 0 ? Math.abs(kept / nKept - all / (draws.length * draws[0].length)) / error : 0;
}

// --- pieces

/** @param {Draws} draws */
const isJudged = (draws) => draws[0].length >= 4 && draws.every((chain) => chain.every(Number.isFinite));

/** @param {Draws} draws */
function join(draws) {
  const n = draws[0].length;
  const all = new Float64Array(draws.length * n);
  draws.forEach((chain, c) => all.set(chain, c * n));
  return all;
}

/** @param {Draws} draws */
const sort = (draws) => join(draws).sort();

/** First and last halves of each chain as chains. @param {Draws} draws @returns {Draws} */
function split(draws) {
  const half = Math.floor(draws[0].length / 2);
  return [...draws.map((chain) => chain.subarray(0, half)), ...draws.map((chain) => chain.slice(chain.length - half))];
}

/** @param {Draws} draws */
function median(draws) {
  const sorted = sort(draws);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Distances from the median. @param {Draws} draws */
function fold(draws) {
  const centre = median(draws);
  return draws.map((chain) => chain.map((x) => Math.abs(x - centre)));
}

/** As NumPy's, by linear interpolation. @param {Float64Array} sorted @param {number} share */
function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const i = Math.floor(place);
  const [a, b] = [sorted[i], sorted[Math.min(i + 1, sorted.length - 1)]];
  const t = place - i;
  return t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t);
}

/**
 * Normal scores of the ranks over all chains; equal values share the mean of their ranks.
 * @param {Draws} draws
 * @returns {Draws}
 */
function rankNormalise(draws) {
  const all = join(draws);
  const n = all.length;
  const order = Uint32Array.from(all, (_, i) => i).sort((i, j) => all[i] - all[j]);
  const scores = new Float64Array(n);
  for (let first = 0, end = 0; first < n; first = end) {
    while (end < n && all[order[end]] === all[order[first]]) end += 1;
    const rank = (first + 1 + end) / 2;
    const score = computeNormalQuantile((rank - 3 / 8) / (n + 1 / 4));
    for (let i = first; i < end; i++) scores[order[i]] = score;
  }
  return draws.map((chain, c) => scores.subarray(c * chain.length, (c + 1) * chain.length));
}

/** @param {Draws} draws */
function computeRhat(draws) {
  const n = draws[0].length;
  const between = n * computeVariance(Float64Array.from(draws, computeMean));
  const within = computeMean(Float64Array.from(draws, computeVariance));
  return Math.sqrt((between / within + n - 1) / n);
}

/** @param {Float64Array} x */
function computeMean(x) {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i];
  return sum / x.length;
}

/** @param {Float64Array} x */
function computeVariance(x) {
  const mean = computeMean(x);
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += (x[i] - mean) * (x[i] - mean);
  return sum / (x.length - 1);
}

/**
 * Effective sample size: autocorrelations are added up in pairs until a pair's sum is negative, and the sums are not
 * let grow (Geyer's initial monotone sequence). Line by line as ArviZ's, so that both end at the same lag.
 * @param {Draws} draws
 */
function computeEss(draws) {
  const n = draws[0].length;
  const nAll = draws.length * n;
  const sorted = sort(draws);
  if (sorted[nAll - 1] - sorted[0] < 1e-15) return nAll;
  const means = Float64Array.from(draws, computeMean);
  const centred = draws.map((chain, c) => chain.map((x) => x - means[c]));
  const covariance = (/** @type {number} */ lag) => averageProducts(centred, lag);
  const within = (covariance(0) * n) / (n - 1);
  const total = (within * (n - 1)) / n + (draws.length > 1 ? computeVariance(means) : 0);
  const correlate = (/** @type {number} */ lag) => 1 - (within - covariance(lag)) / total;
  const rho = new Float64Array(n);
  let even = 1;
  let odd = correlate(1);
  rho[0] = even;
  rho[1] = odd;
  let t = 1;
  while (t < n - 3 && even + odd > 0) {
    even = correlate(t + 1);
    odd = correlate(t + 2);
    if (even + odd >= 0) {
      rho[t + 1] = even;
      rho[t + 2] = odd;
    }
    t += 2;
  }
  const last = t - 2;
  if (even > 0) rho[last + 1] = even;
  for (t = 1; t <= last - 2; t += 2) {
    if (rho[t + 1] + rho[t + 2] > rho[t - 1] + rho[t]) rho[t + 1] = rho[t + 2] = (rho[t - 1] + rho[t]) / 2;
  }
  let time = -1;
  for (let i = 0; i <= last; i++) time += 2 * rho[i];
  if (last + 1 < n) time += rho[last + 1];
  return nAll / Math.max(time, Math.LN10 / log(nAll));
}

/** Autocovariance at a lag, the mean over chains. @param {Draws} centred @param {number} lag */
function averageProducts(centred, lag) {
  let sum = 0;
  for (const chain of centred) {
    for (let i = lag; i < chain.length; i++) sum += chain[i] * chain[i - lag];
  }
  return sum / (centred.length * centred[0].length);
}

/** @param {number[]} coefficients @param {number} x highest power first */
const evaluate = (coefficients, x) => coefficients.reduce((sum, coefficient) => sum * x + coefficient, 0);

const MIDDLE = [
  [2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457, 13731.693765509461125,
   1971.5909503065514427, 133.14166789178437745, 3.387132872796366608],
  [5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867, 5394.1960214247511077,
   687.1870074920579083, 42.313330701600911252, 1],
]; // prettier-ignore
const OUTSIDE = [
  [7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
   3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734],
  [1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
   0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1],
]; // prettier-ignore
const FAR = [
  [2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
   0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772],
  [2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
   0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1],
]; // prettier-ignore

/**
 * Normal quantile, to 16 digits: Wichura (1988), Algorithm AS 241, Applied Statistics 37.
 * @param {number} p
 */
export function computeNormalQuantile(p) {
  const q = p - 0.5;
  if (Math.abs(q) <= 0.425) {
    const r = 0.180625 - q * q;
    return (q * evaluate(MIDDLE[0], r)) / evaluate(MIDDLE[1], r);
  }
  const r = Math.sqrt(-log(q < 0 ? p : 1 - p));
  const [above, below] = r <= 5 ? OUTSIDE : FAR;
  const shift = r <= 5 ? 1.6 : 5;
  const value = evaluate(above, r - shift) / evaluate(below, r - shift);
  return q < 0 ? -value : value;
}
