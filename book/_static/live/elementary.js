// @ts-check
/**
 * exp, log and tanh that give the same bits in every browser.
 *
 * JavaScript leaves the last bits of Math.exp and its like to the engine, and a chain that differs in one bit soon
 * differs in all of them. Addition, multiplication, division and the rounding of whole numbers are exact by the
 * standard (IEEE 754), so we build on these alone. Tables, computed in whole numbers of 140 bits, keep the
 * polynomials short.
 *
 * Source of the method: Tang (1989), Table-driven implementation of the exponential function, ACM TOMS 15.
 */

const BITS = 140n;
const ONE = 1n << BITS;

/** A fixed-point number as the nearest double. @param {bigint} value */
const round = (value) => Number(value) / Number(ONE);

/** exp of a small fixed-point number, by its Taylor series. @param {bigint} x */
function sumExp(x) {
  let sum = ONE;
  for (let term = ONE, n = 1n; term !== 0n; n++) {
    term = (term * x) / (n * ONE);
    sum += term;
  }
  return sum;
}

/** log(a / b) by the series of 2 atanh((a - b) / (a + b)), fixed-point. @param {bigint} a @param {bigint} b */
function sumLog(a, b) {
  const s = ((a - b) * ONE) / (a + b);
  const square = (s * s) / ONE;
  let sum = 0n;
  for (let term = s, n = 1n; term !== 0n; n += 2n) {
    sum += term / n;
    term = (term * square) / ONE;
  }
  return 2n * sum;
}

/** The first 40 bits behind the point, and the rest: whole multiples of the first are exact. @param {bigint} value */
function cut(value) {
  const low = BITS - 40n;
  const high = value >> low;
  return [Number(high) / Number(1n << 40n), round(value - (high << low))];
}

const LN2 = sumLog(2n, 1n);

// --- exp

const EXP_STEPS = 128; // to a power of 2
const EXP = new Float64Array(EXP_STEPS);
const POWERS = new Float64Array(2098); // of 2, from -1074 to 1023
const [STEP_HIGH, STEP_LOW] = cut(LN2 / 128n);
const PER_STEP = 1 / (STEP_HIGH + STEP_LOW);

for (let i = 0, power = ONE, factor = sumExp(LN2 / 128n); i < EXP_STEPS; i++) {
  EXP[i] = round(power);
  power = (power * factor) / ONE;
}
for (let k = 0, power = Number.MIN_VALUE; k < POWERS.length; k++, power *= 2) POWERS[k] = power;

/**
 * e to the x.
 * @param {number} x
 */
export function exp(x) {
  if (!(x < 709.79)) return x !== x ? x : Infinity;
  if (x < -745.2) return 0;
  const n = Math.floor(x * PER_STEP + 0.5);
  const r = x - n * STEP_HIGH - n * STEP_LOW;
  const square = r * r;
  const small = r + square * (0.5 + r * (1 / 6) + square * (1 / 24 + r * (1 / 120)));
  const base = EXP[n & 127];
  const k = n >> 7;
  const value = base + base * small;
  if (k > 1023) return value * 2 * POWERS[k + 1073];
  return k < -1022 ? value * POWERS[k + 1128] * POWERS[1020] : value * POWERS[k + 1074]; // 2^-54 comes last
}

// --- log

const LOG_STEPS = 128; // to 1
const LOG_FIRST = 96; // the table runs from 0.75 to 1.5, so that logs around 1 are not differences of larger ones
const LOG = new Float64Array(LOG_STEPS * 0.75 + 1);
for (let i = 0; i < LOG.length; i++) LOG[i] = round(sumLog(BigInt(LOG_FIRST + i), BigInt(LOG_STEPS)));
const [LN2_HIGH, LN2_LOW] = cut(LN2);
const double = new Float64Array(1);
const words = new Int32Array(double.buffer); // low word first, in every browser there is

/**
 * Natural logarithm.
 * @param {number} x
 */
export function log(x) {
  if (!(x > 0)) return x === 0 ? -Infinity : NaN;
  if (x === Infinity) return x;
  let k = 0;
  if (x < 2.3e-308) {
    x *= 18014398509481984; // 2^54: x is subnormal
    k = -54;
  }
  double[0] = x;
  k += (words[1] >> 20) - 1023;
  words[1] = (words[1] & 0xfffff) | 0x3ff00000;
  let m = double[0];
  if (m >= 1.5) {
    m *= 0.5;
    k += 1;
  }
  const i = ((m - 0.75) * LOG_STEPS + 0.5) | 0;
  const centre = (LOG_FIRST + i) / LOG_STEPS;
  const s = (m - centre) / (m + centre);
  const square = s * s;
  const small = 2 * s + 2 * s * square * (1 / 3 + square * (1 / 5 + square * (1 / 7)));
  return k * LN2_HIGH + (LOG[i] + (small + k * LN2_LOW));
}

/**
 * log(1 + x) for x above -1, right where x is small.
 * @param {number} x
 */
export function log1p(x) {
  const y = 1 + x;
  return log(y) + (x - (y - 1)) / y;
}

// --- tanh

const TANH_STEPS = 64; // to 1
const TANH_END = 20; // beyond it tanh is 1
const TANH_MIDDLE = TANH_END * TANH_STEPS;
const TANH = new Float64Array(2 * TANH_MIDDLE + 1);
for (let i = 1, power = ONE, factor = sumExp(ONE / 32n); i <= TANH_MIDDLE; i++) {
  power = (power * factor) / ONE; // exp(2 i / 64)
  TANH[TANH_MIDDLE + i] = round(((power - ONE) * ONE) / (power + ONE));
  TANH[TANH_MIDDLE - i] = -TANH[TANH_MIDDLE + i];
}

/**
 * Hyperbolic tangent: the nearest entry of the table, and what the addition theorem says of the rest.
 * @param {number} x
 */
export function tanh(x) {
  if (!(x > -TANH_END && x < TANH_END)) return x !== x ? x : x < 0 ? -1 : 1;
  const i = (x * TANH_STEPS + (TANH_MIDDLE + 0.5)) | 0;
  const r = x - (i - TANH_MIDDLE) * (1 / TANH_STEPS);
  const square = r * r;
  const u = r + r * square * (-1 / 3 + square * (2 / 15 + square * (-17 / 315)));
  const t = TANH[i];
  return t + (u - (u * t * (t + u)) / (1 + t * u)); // (t + u) / (1 + t u), to the last bits
}

// --- what a Bernoulli outcome needs

/**
 * log(1 + exp(x)).
 * @param {number} x
 */
export function softplus(x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/**
 * 1 / (1 + exp(-x)).
 * @param {number} x
 */
export function logistic(x) {
  const e = exp(x < 0 ? x : -x);
  return (x < 0 ? e : 1) / (1 + e);
}

/**
 * log(exp(a) + exp(b)).
 * @param {number} a
 * @param {number} b
 */
export function logAddExp(a, b) {
  if (a === b) return a + Math.LN2;
  return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}
