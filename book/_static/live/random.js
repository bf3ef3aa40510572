// @ts-check
/**
 * Random numbers: Threefry-2x32 with 20 rounds.
 *
 * A generator that counts: number i of a stream is a scrambled i, and seed and stream are the key. So chains have
 * streams of their own by construction, and nothing but whole numbers of 32 bits is needed. JAX has the same one.
 *
 * Source: Salmon et al. (2011), Parallel random numbers: as easy as 1, 2, 3, SC '11.
 */

import { log } from "./elementary.js";

/**
 * @typedef {object} Random
 * @property {() => number} uniform at least 0, below 1, with 53 bits
 * @property {() => number} normal standard normal
 */

/** @param {number} x @param {number} n */
const rotate = (x, n) => (x << n) | (x >>> (32 - n));

/**
 * Scramble the counter in place.
 * @param {Int32Array} counter two words
 * @param {number} key0
 * @param {number} key1
 */
export function threefry(counter, key0, key1) {
  const key2 = key0 ^ key1 ^ 0x1bd11bda;
  let a = (counter[0] + key0) | 0;
  let b = (counter[1] + key1) | 0;
  for (let i = 1; i <= 5; i++) {
    const odd = i & 1;
    a = (a + b) | 0;
    b = rotate(b, odd ? 13 : 17) ^ a;
    a = (a + b) | 0;
    b = rotate(b, odd ? 15 : 29) ^ a;
    a = (a + b) | 0;
    b = rotate(b, odd ? 26 : 16) ^ a;
    a = (a + b) | 0;
    b = rotate(b, odd ? 6 : 24) ^ a;
    const at = i % 3;
    a = (a + (at === 0 ? key0 : at === 1 ? key1 : key2)) | 0;
    b = (b + (at === 0 ? key1 : at === 1 ? key2 : key0) + i) | 0;
  }
  counter[0] = a;
  counter[1] = b;
}

/**
 * A stream of random numbers.
 * @param {number} seed a whole number, of which 32 bits count
 * @param {number} stream likewise; streams of one seed are independent
 * @returns {Random}
 */
export function makeRandom(seed, stream) {
  const words = new Int32Array(2);
  let low = 0;
  let high = 0;
  let spare = NaN;

  function uniform() {
    words[0] = low;
    words[1] = high;
    threefry(words, seed | 0, stream | 0);
    low = (low + 1) | 0;
    if (low === 0) high = (high + 1) | 0;
    return ((words[0] >>> 5) * 67108864 + (words[1] >>> 6)) / 9007199254740992;
  }

  /** Two at a time by the polar method of Marsaglia and Bray (1964), SIAM Review 6. */
  function normal() {
    if (spare === spare) {
      const value = spare;
      spare = NaN;
      return value;
    }
    let u = 0;
    let v = 0;
    let square = 0;
    do {
      u = 2 * uniform() - 1;
      v = 2 * uniform() - 1;
      square = u * u + v * v;
    } while (square >= 1 || square === 0);
    const scale = Math.sqrt((-2 * log(square)) / square);
    spare = v * scale;
    return u * scale;
  }

  return { uniform, normal };
}
