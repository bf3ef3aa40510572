// @ts-check
/**
 * The No-U-Turn sampler: multinomial draws from trajectories, step size by dual averaging, diagonal mass matrix.
 *
 * Sources: Hoffman and Gelman (2014), The No-U-Turn Sampler, JMLR 15; Betancourt (2017), A Conceptual Introduction to
 * Hamiltonian Monte Carlo (the multinomial draw and the criterion with summed momenta). Windows of tuning, the search
 * for a first step size and the two further checks of a trajectory's middle are Stan's.
 */

import { exp, log, logAddExp } from "./elementary.js";
import { makeRandom } from "./random.js";

/** @typedef {import("./network.js").Model} Model */

/**
 * @typedef {object} Draw
 * @property {Float64Array} theta the position; the array is used again by the next step
 * @property {number} logDensity
 * @property {number} energy
 * @property {boolean} tuning whether the draw belongs to the tuning
 * @property {boolean} divergent
 * @property {number} depth doublings
 * @property {number} acceptance mean acceptance along the trajectory, which the step size is adapted to
 * @property {number} stepSize
 */

/**
 * @typedef {object} Chain
 * @property {() => Draw} step one more draw, tuning first
 * @property {number} taken draws so far, tuning included
 * @property {number} gradients evaluations so far
 * @property {boolean} done
 */

const MAX_ENERGY_ERROR = 1000; // nats; beyond it a trajectory has diverged

/** A place on a trajectory. @param {number} size */
const makeState = (size) => ({
  theta: new Float64Array(size),
  momentum: new Float64Array(size),
  gradient: new Float64Array(size),
  logDensity: 0,
});
/** @typedef {ReturnType<typeof makeState>} State */

/** @param {State} from @param {State} to */
function copyState(from, to) {
  to.theta.set(from.theta);
  to.momentum.set(from.momentum);
  to.gradient.set(from.gradient);
  to.logDensity = from.logDensity;
}

/**
 * A piece of a trajectory: its sum of momenta, the momenta at both ends, its weight and a draw from it.
 * @param {number} size
 */
const makePiece = (size) => ({
  sum: new Float64Array(size),
  first: new Float64Array(size),
  last: new Float64Array(size),
  draw: makeState(size),
  energy: 0, // of the draw
  logWeight: 0,
});
/** @typedef {ReturnType<typeof makePiece>} Piece */

/**
 * A chain. Its draws depend on model, seed, number of the chain and settings, and on nothing else. One that is not tuned
 * may be given the length of its steps.
 * @param {{ model: Pick<Model, "size" | "logDensity" | "start">, seed: number, chain: number, tune?: number,
 *   draws?: number, targetAccept?: number, maxDepth?: number, firstStep?: number }} options
 * @returns {Chain}
 */
export function makeChain(options) {
  const { model, seed, chain, tune = 500, draws = 500, targetAccept = 0.8, maxDepth = 10, firstStep } = options;
  const { size } = model;
  const random = makeRandom(seed, chain);
  const variance = new Float64Array(size).fill(1); // the inverse mass
  const start = makeState(size); // where the last trajectory started; the draw ends up here
  const ends = [makeState(size), makeState(size)]; // backward, forward
  const whole = makePiece(size);
  const pool = Array.from({ length: maxDepth + 1 }, () => [makePiece(size), makePiece(size)]);
  const averaging = makeDualAveraging(targetAccept);
  const windows = listWindows(tune);
  const moments = makeMoments(size);
  let stepSize = firstStep ?? 0.1;
  let gradients = 0;
  let taken = 0;
  let energy0 = 0;
  let acceptance = 0; // summed over the places of a trajectory
  let places = 0;
  let divergent = false;

  /** @param {State} state */
  function evaluate(state) {
    state.logDensity = model.logDensity(state.theta, state.gradient);
    gradients += 1;
  }

  /** @param {State} state */
  function computeEnergy({ momentum, logDensity }) {
    let kinetic = 0;
    for (let i = 0; i < size; i++) kinetic += variance[i] * momentum[i] * momentum[i];
    const energy = 0.5 * kinetic - logDensity;
    return energy === energy ? energy : Infinity;
  }

  /** @param {State} state @param {number} step */
  function leapfrog(state, step) {
    const { theta, momentum, gradient } = state;
    for (let i = 0; i < size; i++) {
      momentum[i] += 0.5 * step * gradient[i];
      theta[i] += step * variance[i] * momentum[i];
    }
    evaluate(state);
    for (let i = 0; i < size; i++) momentum[i] += 0.5 * step * gradient[i];
  }

  /** @param {State} state */
  function drawMomentum({ momentum }) {
    for (let i = 0; i < size; i++) momentum[i] = random.normal() / Math.sqrt(variance[i]);
  }

  /**
   * Whether both ends still move apart.
   * @param {Float64Array} first
   * @param {Float64Array} last
   * @param {Float64Array} sum
   * @param {Float64Array} [more]
   */
  function movesApart(first, last, sum, more) {
    let atFirst = 0;
    let atLast = 0;
    for (let i = 0; i < size; i++) {
      const along = variance[i] * (more ? sum[i] + more[i] : sum[i]);
      atFirst += along * first[i];
      atLast += along * last[i];
    }
    return atFirst > 0 && atLast > 0;
  }

  /**
   * The same of two pieces that follow one another, of them together and of either with the edge of the other.
   * @param {Piece} a
   * @param {Piece} b
   */
  function goesOn(a, b) {
    for (let i = 0; i < size; i++) whole.sum[i] = a.sum[i] + b.sum[i];
    return (
      movesApart(a.first, b.last, whole.sum) &&
      movesApart(a.first, b.first, a.sum, b.first) &&
      movesApart(a.last, b.last, b.sum, a.last)
    );
  }

  /** One step from the end of the trajectory. @param {Piece} piece @param {State} end @param {number} step */
  function growLeaf(piece, end, step) {
    leapfrog(end, step);
    const energy = computeEnergy(end);
    const gain = energy0 - energy;
    places += 1;
    acceptance += gain > 0 ? 1 : exp(gain);
    piece.sum.set(end.momentum);
    piece.first.set(end.momentum);
    piece.last.set(end.momentum);
    copyState(end, piece.draw);
    piece.energy = energy;
    piece.logWeight = gain;
    if (-gain > MAX_ENERGY_ERROR) divergent = true;
    return !divergent;
  }

  /**
   * A piece of 2^depth places, grown from an end in a direction; false where it turned or diverged.
   * @param {Piece} piece
   * @param {number} depth
   * @param {State} end
   * @param {number} step
   * @returns {boolean}
   */
  function growPiece(piece, depth, end, step) {
    if (depth === 0) return growLeaf(piece, end, step);
    const [a, b] = pool[depth - 1];
    if (!growPiece(a, depth - 1, end, step) || !growPiece(b, depth - 1, end, step)) return false;
    const logWeight = logAddExp(a.logWeight, b.logWeight);
    const chosen = random.uniform() < exp(b.logWeight - logWeight) ? b : a;
    copyState(chosen.draw, piece.draw);
    piece.energy = chosen.energy;
    piece.logWeight = logWeight;
    // a piece that grows backward is kept in the order in which it grew: the criterion is the same
    const further = goesOn(a, b);
    piece.sum.set(whole.sum);
    piece.first.set(a.first);
    piece.last.set(b.last);
    return further;
  }

  const trunk = makePiece(size);
  const branch = makePiece(size);

  /** One trajectory: doubled until it turns. Leaves the draw in `start`; returns the depth. */
  function move() {
    drawMomentum(start);
    energy0 = computeEnergy(start);
    copyState(start, ends[0]);
    copyState(start, ends[1]);
    trunk.sum.set(start.momentum);
    trunk.first.set(start.momentum);
    trunk.last.set(start.momentum);
    trunk.energy = energy0;
    trunk.logWeight = 0;
    acceptance = places = 0;
    divergent = false;
    let depth = 0;
    while (depth < maxDepth) {
      const forward = random.uniform() < 0.5;
      if (!growPiece(branch, depth, ends[forward ? 1 : 0], forward ? stepSize : -stepSize)) break;
      depth += 1;
      // the further half is preferred, which moves the draw away from where it started
      if (random.uniform() < exp(branch.logWeight - trunk.logWeight)) {
        copyState(branch.draw, start);
        trunk.energy = branch.energy;
      }
      trunk.logWeight = logAddExp(trunk.logWeight, branch.logWeight);
      if (!forward) swapEnds(branch);
      const further = forward ? goesOn(trunk, branch) : goesOn(branch, trunk);
      trunk.sum.set(whole.sum);
      (forward ? trunk.last : trunk.first).set(forward ? branch.last : branch.first);
      if (!further) break;
    }
    return depth;
  }

  /**
   * A step size that is neither far too short nor far too long: doubled or halved until a step is accepted with 0.8.
   */
  function findStepSize() {
    const probe = ends[0];
    let direction = 0;
    for (let i = 0; i < 60; i++) {
      copyState(start, probe);
      drawMomentum(probe);
      const before = computeEnergy(probe);
      leapfrog(probe, stepSize);
      const wanted = before - computeEnergy(probe) > log(0.8) ? 1 : -1;
      if (direction === 0) direction = wanted;
      if (wanted !== direction) return;
      stepSize *= direction > 0 ? 2 : 0.5;
    }
  }

  function begin() {
    model.start(random, start.theta);
    evaluate(start);
    if (!firstStep) findStepSize();
    averaging.restart(stepSize);
  }

  /** What tuning learns from a draw. */
  function adapt() {
    stepSize = averaging.update(acceptance / places);
    if (taken >= windows.first && taken < windows.last) moments.add(start.theta);
    if (windows.ends.includes(taken + 1)) {
      moments.writeVariance(variance);
      moments.clear();
      findStepSize();
      averaging.restart(stepSize);
    }
    if (taken + 1 === tune) stepSize = averaging.finish();
  }

  function step() {
    if (taken === 0) begin();
    const tuning = taken < tune;
    const used = stepSize;
    const depth = move();
    if (tuning) adapt();
    taken += 1;
    const { theta, logDensity } = start;
    const { energy } = trunk;
    return { theta, logDensity, energy, tuning, divergent, depth, acceptance: acceptance / places, stepSize: used };
  }

  return {
    step,
    get taken() {
      return taken;
    },
    get gradients() {
      return gradients;
    },
    get done() {
      return taken >= tune + draws;
    },
  };
}

/** A piece that grew backward, in the order of the trajectory. @param {Piece} piece */
function swapEnds(piece) {
  const { first, last } = piece;
  piece.first = last;
  piece.last = first;
}

/**
 * Nesterov's dual averaging of the log step size, with the constants of Hoffman and Gelman (2014).
 * @param {number} target
 */
function makeDualAveraging(target) {
  let centre = 0;
  let mean = 0;
  let error = 0;
  let count = 0;
  return {
    /** @param {number} stepSize */
    restart(stepSize) {
      centre = log(10 * stepSize);
      mean = error = count = 0;
    },
    /** The step size to try next. @param {number} acceptance */
    update(acceptance) {
      count += 1;
      error += (target - acceptance - error) / (count + 10);
      const logStep = centre - (error * Math.sqrt(count)) / 0.05;
      mean += exp(-0.75 * log(count)) * (logStep - mean);
      return exp(logStep);
    },
    finish: () => exp(mean),
  };
}

/**
 * When the mass matrix is learned: not in the first 15 % of the tuning, then in windows of 25, 50, 100, … draws, and
 * not in the last 10 %.
 * @param {number} tune
 */
function listWindows(tune) {
  const first = tune < 150 ? Math.floor(0.15 * tune) : 75;
  const last = tune < 150 ? Math.floor(0.9 * tune) : tune - 50;
  const ends = [];
  for (let at = first, width = 25; at < last; width *= 2) {
    at = at + 3 * width > last ? last : at + width; // a window that leaves no room for the next one takes it all
    ends.push(at);
  }
  return { first, last, ends };
}

/**
 * Running variances (Welford 1962), drawn a little towards a small value, as in Stan.
 * @param {number} size
 */
function makeMoments(size) {
  const mean = new Float64Array(size);
  const squares = new Float64Array(size);
  let count = 0;
  return {
    /** @param {Float64Array} theta */
    add(theta) {
      count += 1;
      for (let i = 0; i < size; i++) {
        const d = theta[i] - mean[i];
        mean[i] += d / count;
        squares[i] += d * (theta[i] - mean[i]);
      }
    },
    /** @param {Float64Array} variance */
    writeVariance(variance) {
      if (count < 2) return;
      const weight = count / (count + 5);
      for (let i = 0; i < size; i++) variance[i] = (weight * squares[i]) / (count - 1) + 0.001 * (1 - weight);
    },
    clear() {
      mean.fill(0);
      squares.fill(0);
      count = 0;
    },
  };
}
