// @ts-check
/**
 * The book's networks as densities: log density, gradient and predictions.
 *
 * One network has two hidden layers of tanh units and no biases: h1 = tanh(x W1), h2 = tanh(h1 W2), logit = h2 w3. Its
 * weights lie one after the other: W1 (2, a), W2 (a, b), w3 (b), rows first, as PyMC has them. With biases a third
 * input is always 1, and W1 is (3, a), as in an exercise of the chapter on the flat network. A network of one hidden
 * layer has W1 and w2 (a) alone.
 */

import { exp, log, log1p, logistic, softplus, tanh } from "./elementary.js";

/** @typedef {import("./random.js").Random} Random */

/**
 * @typedef {object} Model
 * @property {number} size how many unknowns
 * @property {string[]} names of the unknowns, in order
 * @property {(theta: Float64Array, gradient: Float64Array) => number} logDensity writes the gradient
 * @property {(theta: Float64Array) => number} logLikelihood of all labels
 * @property {(theta: Float64Array, points: Float64Array, out: Float64Array, groups?: Int32Array) => void} predict
 *   writes P(class 1) at each point (x1, x2, x1, x2, …), for the group of each
 * @property {(theta: Float64Array) => Record<string, number>} describe group sds, where there are any
 * @property {(random: Random, theta: Float64Array) => void} start writes where a chain starts
 */

/**
 * @typedef {object} Data
 * @property {Float64Array} X x1, x2, x1, x2, …
 * @property {ArrayLike<number>} y 0 or 1
 * @property {number[]} [hidden] units of the hidden layers, of two or of one; default 5 and 5
 * @property {boolean} [biases] whether a third input is always 1; default no
 */

/**
 * Ties between groups. "learned": as in the book, the sds of layers are unknowns. "pooled": one network for all groups.
 * "none": to each its own. A number in between is the prior correlation of a weight in two groups: weights are
 * sqrt(tie) mu + sqrt(1 - tie) z, so that each is N(0, 1) by itself whatever the tie; 0 is "none" and 1 is "pooled".
 * @typedef {"learned" | "pooled" | "none" | number} Ties
 */

const HALF_LOG_2PI = 0.9189385332046728;

/**
 * What all networks of one architecture share: loops over points.
 * @param {number[]} hidden
 * @param {boolean} biases
 */
function makeArchitecture([a, b], biases) {
  if (!b) return makeShallow(a, biases);
  const h1 = new Float64Array(a);
  const h2 = new Float64Array(b);
  const d2 = new Float64Array(b);
  const second = (biases ? 3 : 2) * a; // where W2 starts
  const third = second + a * b;
  const size = third + b;

  /**
   * The logit at a point; units are left in h1 and h2.
   * @param {Float64Array} w
   * @param {number} x1
   * @param {number} x2
   */
  function computeLogit(w, x1, x2) {
    for (let j = 0; j < a; j++) h1[j] = tanh(x1 * w[j] + x2 * w[a + j] + (biases ? w[2 * a + j] : 0));
    let logit = 0;
    for (let k = 0; k < b; k++) {
      let sum = 0;
      for (let j = 0, at = second + k; j < a; j++, at += b) sum += h1[j] * w[at];
      const h = tanh(sum);
      h2[k] = h;
      logit += h * w[third + k];
    }
    return logit;
  }

  /**
   * Log likelihood of the labels from `first` to `last`; its gradient is added to `g`.
   * @param {Float64Array} w
   * @param {Float64Array} g
   * @param {Float64Array} X
   * @param {Uint8Array} y
   * @param {number} first
   * @param {number} last
   */
  function addGradient(w, g, X, y, first, last) {
    let loglik = 0;
    for (let n = first; n < last; n++) {
      const x1 = X[2 * n];
      const x2 = X[2 * n + 1];
      const logit = computeLogit(w, x1, x2);
      const toward = y[n] ? logit : -logit; // the label, on the scale of logits
      const e = exp(toward < 0 ? toward : -toward);
      const doubt = (toward < 0 ? 1 : e) / (1 + e); // probability of the other label
      loglik += (toward < 0 ? toward : 0) - log1p(e);
      const residual = y[n] ? doubt : -doubt;
      for (let k = 0; k < b; k++) {
        const h = h2[k];
        g[third + k] += residual * h;
        d2[k] = residual * w[third + k] * (1 - h * h);
      }
      for (let j = 0, at = second; j < a; j++) {
        const h = h1[j];
        let sum = 0;
        for (let k = 0; k < b; k++, at++) {
          g[at] += h * d2[k];
          sum += w[at] * d2[k];
        }
        const d1 = sum * (1 - h * h);
        g[j] += x1 * d1;
        g[a + j] += x2 * d1;
        if (biases) g[2 * a + j] += d1;
      }
    }
    return loglik;
  }

  const layers = [
    { first: 0, size: second },
    { first: second, size: a * b },
    { first: third, size: b },
  ];
  return { size, layers, computeLogit, addGradient, sumLogLikelihood: makeSum(computeLogit) };
}

/**
 * The same of networks with one hidden layer.
 * @param {number} a units
 * @param {boolean} biases
 */
function makeShallow(a, biases) {
  const h = new Float64Array(a), second = (biases ? 3 : 2) * a;

  /** @param {Float64Array} w @param {number} x1 @param {number} x2 */
  function computeLogit(w, x1, x2) {
    let logit = 0;
    for (let j = 0; j < a; j++) {
      h[j] = tanh(x1 * w[j] + x2 * w[a + j] + (biases ? w[2 * a + j] : 0));
      logit += h[j] * w[second + j];
    }
    return logit;
  }

  /**
   * @param {Float64Array} w
   * @param {Float64Array} g
   * @param {Float64Array} X
   * @param {Uint8Array} y
   * @param {number} first
   * @param {number} last
   */
  function addGradient(w, g, X, y, first, last) {
    let loglik = 0;
    for (let n = first; n < last; n++) {
      const x1 = X[2 * n], x2 = X[2 * n + 1], logit = computeLogit(w, x1, x2), sign = y[n] ? 1 : -1;
      loglik -= softplus(-sign * logit);
      const residual = sign * logistic(-sign * logit);
      for (let j = 0; j < a; j++) {
        const d = residual * w[second + j] * (1 - h[j] * h[j]);
        g[second + j] += residual * h[j];
        g[j] += x1 * d;
        g[a + j] += x2 * d;
        if (biases) g[2 * a + j] += d;
      }
    }
    return loglik;
  }

  const layers = [{ first: 0, size: second }, { first: second, size: a }];
  return { size: second + a, layers, computeLogit, addGradient, sumLogLikelihood: makeSum(computeLogit) };
}

/**
 * A function that sums the log likelihood of the labels from `first` to `last`.
 * @param {(w: Float64Array, x1: number, x2: number) => number} computeLogit
 */
function makeSum(computeLogit) {
  /**
   * @param {Float64Array} w
   * @param {Float64Array} X
   * @param {Uint8Array} y
   * @param {number} first
   * @param {number} last
   */
  return (w, X, y, first, last) => {
    let loglik = 0;
    for (let n = first; n < last; n++) {
      const logit = computeLogit(w, X[2 * n], X[2 * n + 1]);
      loglik -= softplus(y[n] ? -logit : logit);
    }
    return loglik;
  };
}

/**
 * One network, with N(0, sd) priors on its weights.
 * @param {Data & { sd?: number }} options
 * @returns {Model}
 */
export function makeFlat({ X, y, hidden = [5, 5], biases = false, sd = 1 }) {
  const labels = Uint8Array.from(y);
  const n = labels.length;
  const network = makeArchitecture(hidden, biases);
  const size = network.size;
  const precision = 1 / (sd * sd);
  const constant = -size * (HALF_LOG_2PI + log(sd));

  return {
    size,
    names: network.layers.flatMap((layer, k) => nameAll(`w${k + 1}`, layer.size)),
    logDensity(theta, gradient) {
      let square = 0;
      for (let i = 0; i < size; i++) {
        square += theta[i] * theta[i];
        gradient[i] = -precision * theta[i];
      }
      return constant - 0.5 * precision * square + network.addGradient(theta, gradient, X, labels, 0, n);
    },
    logLikelihood: (theta) => network.sumLogLikelihood(theta, X, labels, 0, n),
    predict(theta, points, out) {
      for (let i = 0; i < out.length; i++) {
        out[i] = logistic(network.computeLogit(theta, points[2 * i], points[2 * i + 1]));
      }
    },
    describe: () => ({}),
    start(random, theta) {
      for (let i = 0; i < size; i++) theta[i] = sd * random.normal();
    },
  };
}

/**
 * One network for each group, tied by common means.
 * @param {Data & { group: ArrayLike<number>, nGroups: number, sdScale?: number, ties?: Ties }} options
 *   group: of each point, from 0; sdScale: of the HalfNormal prior of the sds, where they are learned
 * @returns {Model}
 */
export function makeHierarchical(options) {
  const { X, y, group, nGroups, hidden = [5, 5], biases = false, sdScale = 1, ties = "learned" } = options;
  if (ties === "pooled" || ties === 1) return makeFlat({ X, y, hidden, biases });
  const learned = ties === "learned";
  const tie = typeof ties === "number" ? ties : 0;
  const sorted = sortByGroup(X, y, group, nGroups);
  const network = makeArchitecture(hidden, biases);
  const layout = placeLayers(network.layers, nGroups, learned || tie > 0, learned);
  const { size, names, layers } = layout;
  const weights = Array.from({ length: nGroups }, () => new Float64Array(network.size));
  const slope = new Float64Array(network.size);
  const shared = learned ? 1 : Math.sqrt(tie);
  const own = Math.sqrt(1 - tie);
  const nSds = learned ? layers.length : 0;
  const constant = -(size - nSds) * HALF_LOG_2PI + nSds * (Math.LN2 - HALF_LOG_2PI - log(sdScale));

  /** @param {Float64Array} theta */
  function fillWeights(theta) {
    for (const { first, size: n, mu, sd, z } of layers) {
      const spread = learned ? exp(theta[sd]) : own;
      for (let g = 0, at = z; g < nGroups; g++) {
        const w = weights[g];
        for (let i = 0; i < n; i++, at++) w[first + i] = (mu < 0 ? 0 : shared * theta[mu + i]) + spread * theta[at];
      }
    }
  }

  /** @param {Float64Array} theta @param {Float64Array} gradient */
  function computePrior(theta, gradient) {
    let logp = 0;
    for (let i = 0; i < size; i++) {
      logp -= 0.5 * theta[i] * theta[i];
      gradient[i] = -theta[i];
    }
    if (!learned) return logp;
    for (const { sd } of layers) {
      const scaled = exp(theta[sd]) / sdScale;
      const square = scaled * scaled;
      logp += 0.5 * theta[sd] * theta[sd] - 0.5 * square + theta[sd]; // the last one: we sample log(sd)
      gradient[sd] = 1 - square;
    }
    return logp;
  }

  /**
   * Hand the slope along the weights of a group on.
   * @param {Float64Array} theta
   * @param {Float64Array} gradient
   * @param {number} g
   */
  function addSlope(theta, gradient, g) {
    for (const { first, size: n, mu, sd, z } of layers) {
      const spread = learned ? exp(theta[sd]) : own;
      let along = 0;
      for (let i = 0, at = z + g * n; i < n; i++, at++) {
        const d = slope[first + i];
        if (mu >= 0) gradient[mu + i] += shared * d;
        gradient[at] += spread * d;
        along += d * theta[at];
      }
      if (learned) gradient[sd] += spread * along;
    }
  }

  return {
    size,
    names,
    logDensity(theta, gradient) {
      let logp = constant + computePrior(theta, gradient);
      fillWeights(theta);
      for (let g = 0; g < nGroups; g++) {
        slope.fill(0);
        logp += network.addGradient(weights[g], slope, sorted.X, sorted.y, sorted.first[g], sorted.first[g + 1]);
        addSlope(theta, gradient, g);
      }
      return logp;
    },
    logLikelihood(theta) {
      fillWeights(theta);
      let loglik = 0;
      for (let g = 0; g < nGroups; g++) {
        loglik += network.sumLogLikelihood(weights[g], sorted.X, sorted.y, sorted.first[g], sorted.first[g + 1]);
      }
      return loglik;
    },
    predict(theta, points, out, groups) {
      fillWeights(theta);
      for (let i = 0; i < out.length; i++) {
        const w = weights[groups ? groups[i] : 0];
        out[i] = logistic(network.computeLogit(w, points[2 * i], points[2 * i + 1]));
      }
    },
    describe: (theta) =>
      Object.fromEntries(layers.map(({ sd }, k) => [`sd${k + 1}`, learned ? exp(theta[sd]) : own])),
    start(random, theta) {
      for (let i = 0; i < size; i++) theta[i] = random.normal();
      if (learned) for (const { sd } of layers) theta[sd] = log(sdScale) - 2 * random.uniform();
    },
  };
}

/** @param {string} name @param {number} n */
const nameAll = (name, n) => Array.from({ length: n }, (_, i) => `${name}[${i}]`);

/**
 * Where the unknowns of each layer stand in theta: mu, log sd and z, as PyMC orders them; -1 for what is not there.
 * @param {{ first: number, size: number }[]} shapes
 * @param {number} nGroups
 * @param {boolean} hasMu
 * @param {boolean} hasSd
 */
function placeLayers(shapes, nGroups, hasMu, hasSd) {
  /** @type {string[]} */
  const names = [];
  const layers = shapes.map(({ first, size }, k) => {
    const mu = hasMu ? names.length : -1;
    if (hasMu) names.push(...nameAll(`mu${k + 1}`, size));
    const sd = hasSd ? names.length : -1;
    if (hasSd) names.push(`log sd${k + 1}`);
    const z = names.length;
    names.push(...nameAll(`z${k + 1}`, nGroups * size));
    return { first, size, mu, sd, z };
  });
  return { size: names.length, names, layers };
}

/**
 * Points in the order of their groups; those of group g stand from first[g] to first[g + 1].
 * @param {Float64Array} X
 * @param {ArrayLike<number>} y
 * @param {ArrayLike<number>} group
 * @param {number} nGroups
 */
function sortByGroup(X, y, group, nGroups) {
  const order = Array.from({ length: y.length }, (_, i) => i).sort((i, j) => group[i] - group[j] || i - j);
  const sorted = { X: new Float64Array(X.length), y: new Uint8Array(y.length), first: new Int32Array(nGroups + 1) };
  order.forEach((i, place) => {
    sorted.X.set(X.subarray(2 * i, 2 * i + 2), 2 * place);
    sorted.y[place] = y[i];
    sorted.first[group[i] + 1] += 1;
  });
  for (let g = 0; g < nGroups; g++) sorted.first[g + 1] += sorted.first[g];
  return sorted;
}
