"""The samplers of `challenge`, each with the settings that its authors give, with gradients counted.

Nothing was tuned by us. Where a method leaves the start to its user, weights start at draws from the prior and scales
at 1, as in BlackJAX's article on this network. What we took from where:

nutpie, in its three forms: its defaults (400 steps of warm-up, 800 with low rank); PyMC: its defaults (1,000 steps);
NumPyro and BlackJAX's NUTS: theirs (1,000 steps, starts of NumPyro's own); these three also with a warm-up of 400
steps, which nutpie has by default; MCLMC: the defaults of BlackJAX's
`mclmc_find_L_and_step_size`, for as many steps as the budget buys, a quarter of them to tune. Adjusted MCLMC, called
MAMS in its paper: as in BlackJAX's Sampling Book, with target 0.9 and trajectories of random length, but two rounds of
tuning, which is BlackJAX's default since it fixes the mean length at two steps (a third round would be discarded).
MEADS: the Sampling Book's recipe, a short NUTS chain to start 64 chains near the posterior, 1,000 steps of adaptation.
LAPS: as in the Sampling Book, half of the gradients without a correction and half with one, and no early stop; each of
1,024 chains gives one draw, the last, as its authors advise as many chains as wanted draws. What it does depends on
the budget, so each budget is a run of its own.
WALNUTS: walnutpie's defaults, but 1,000 steps of warm-up, its most, as no seed reproduces a warm-up that stops when it
thinks fit. MILE: the configuration of its authors' repository for classification, `tabluar_classif/sonar.yaml`: AdamW
with learning rate 0.01 and weight decay 0.001 for each member, then 50,000 steps of warm-up in which the variance that
the energy may have falls from 0.5 to 0.1 for each dimension, no preconditioning. Its minibatches and early stopping
need points that are left out; a member here takes 2,000 steps on all points, at the log posterior.

The chains of MEADS and of LAPS walk in step, in one program; all others run one after the other.
"""

import ctypes
import importlib.util
import time
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from hbnn.reference import posteriors

from studies.reference import compile_model, flatten, list_positions, make_density

KEPT = 2000  # draws of a chain that the budget of gradients buys where every step is a draw: others are left out
BLOCK = 25  # draws between two looks at the clock
MARGIN = 1.15  # a chain goes this much beyond its share of gradients: others may need more for as many draws
MEMBERS, CROWD = 64, 1024  # chains of MEADS, and of LAPS
ROOM = 2_400_000_000  # bytes that nutpie may set aside for the draws of a chain; few of them are ever written
WALNUTPIE = "walnutpie==0.0.3"


@dataclass(frozen=True)
class Budget:
    """What a run, or one of its chains, may spend: gradients, but no more CPU-seconds than `cap`."""

    gradients: float
    cap: float

    def share(self, n_chains):
        """What is left for one of several chains."""
        return Budget(self.gradients / n_chains, self.cap / n_chains)

    def is_spent(self, gradients, cpu):
        """Whether a chain that has spent so much is to stop."""
        return cpu >= self.cap or gradients >= MARGIN * self.gradients


@dataclass(frozen=True, eq=False)
class Chain:
    """One chain.

    Attributes
    ----------
    values : (draw, functional), what was asked of each draw
    gradients : (draw,), what was spent until then, warm-up included
    warmup : gradients of the warm-up
    """

    values: np.ndarray
    gradients: np.ndarray
    warmup: float


def ask(posterior, unknowns):
    """The functionals (draw, functional) of a chain's unknowns, each (draw, …), scales as `list_positions` has them."""
    draws = {}
    for name, value in unknowns.items():
        value = np.asarray(value)[None]
        draws[name.removeprefix("log_")] = np.exp(value) if name.startswith("log_") else value
    return flatten(posteriors.load_posterior(posterior).compute(draws))[0]


def derive(seed, k):
    """The seed of chain `k` of a run (int)."""
    return 1000 * seed + k


# --- PyMC's models: nutpie, PyMC, WALNUTS


@lru_cache
def build(posterior):
    """The model that nutpie has in `reference_scores`."""
    from studies import reference_scores

    return reference_scores.build(posterior)


def sample_nutpie(posterior, seed, budget, **options):
    """nutpie, chain after chain, each stopped by hand when its budget is spent."""
    compiled, own = compile_model(posterior), budget.share(4)
    return [_sample_nutpie(posterior, compiled, derive(seed, k), own, options) for k in range(4)]


def _sample_nutpie(posterior, compiled, seed, budget, options):
    import nutpie

    start, steps = time.process_time(), [0]

    def note(chains):
        steps.append(chains[0].total_num_steps)

    sampler = nutpie.sample(
        compiled, draws=min(100_000, ROOM // (8 * compiled.n_dim)), chains=1, cores=1, seed=seed, progress_bar=False,
        blocking=False, progress_callback=note, progress_rate=20, **options,
    )  # fmt: skip
    while True:
        try:
            tree = sampler.wait(timeout=0.05)
            break
        except TimeoutError:
            if budget.is_spent(steps[-1], time.process_time() - start):
                tree = sampler.abort()
                break
    counts = [tree[group]["n_steps"].values[0].astype(int) for group in ("warmup_sample_stats", "sample_stats")]
    warmup, gradients = float(counts[0].sum()), counts[0].sum() + counts[1].cumsum()
    if not len(gradients):
        return Chain(_no_draws(posterior), gradients, warmup)
    # only here every few gradients are a draw
    thin = find_thin(budget, counts[1][0]) if options.get("sampler") == "mclmc" else 1
    kept = slice(thin - 1, None, thin)
    names = posteriors.load_posterior(posterior).unknowns
    values = ask(posterior, {name: tree["posterior"][name].values[0, kept] for name in names})
    return Chain(values, gradients[kept], warmup)


def sample_pymc(posterior, seed, budget, tune=1000):
    """PyMC's own NUTS as `pm.sample` starts and tunes it; the loop is ours, so that it can be stopped."""
    from pymc.sampling.mcmc import init_nuts

    chains, own = [], budget.share(4)
    for k in range(4):
        (point,), step = init_nuts(
            chains=1, random_seed=[derive(seed, k)], model=build(posterior), tune=tune, progressbar=False, quiet=True
        )
        step.step(point)  # compiles
        step.setup_chain(np.random.default_rng(derive(seed, k)), tune, 1)
        step.tune, step.iter_count = True, 0
        step.reset_tuning()
        points, gradients, spent, start = [], [], 0, time.process_time()
        while not own.is_spent(spent, time.process_time() - start):
            if len(gradients) == tune:
                step.stop_tuning()
            point, stats = step.step(point)
            spent += stats[0]["tree_size"] + 1  # and the one at the start of each draw
            points.append(point if len(gradients) >= tune else None)
            gradients.append(spent)
        kept = slice(tune, None)
        names = [name.removesuffix("_log__") for name in point]
        found = {
            f"log_{name}" if f"{name}_log__" in point else name:
            np.array([p[f"{name}_log__" if f"{name}_log__" in p else name] for p in points[kept]])
            for name in names
        }  # fmt: skip
        warmup = float(gradients[min(tune, len(gradients)) - 1])
        values = ask(posterior, found) if len(points) > tune else _no_draws(posterior)
        chains.append(Chain(values, np.array(gradients[kept]), warmup))
    return chains


def _no_draws(posterior):
    return np.empty((0, len(posteriors.load_posterior(posterior).names)))


def sample_walnuts(posterior, seed, budget, tune=1000):
    """WALNUTS by walnutpie, on nutpie's compiled density. Gradients, and time, are spread evenly over a chain's draws.

    Raises
    ------
    ModuleNotFoundError
        Without walnutpie, which is not in this book's lock, with the command that installs it elsewhere.
    """
    if importlib.util.find_spec("walnutpie") is None:
        raise ModuleNotFoundError(
            f"walnutpie is not installed; wanted: pip install --no-deps --target DIR {WALNUTPIE}, and DIR in PYTHONPATH"
        )
    chains, own = [], budget.share(4)
    for k in range(4):
        run = partial(_walk_walnuts, posterior, derive(seed, k), tune)
        warmup, wanted = run(1)[1], 1
        total, cpu, each = warmup, 0.0, warmup / tune
        while not own.is_spent(total, cpu):  # how many gradients its draws take is not known before
            wanted = max(int((1.1 * MARGIN * own.gradients - warmup) / each), wanted + 1)
            draws, total, cpu = run(wanted)
            each = max((total - warmup) / wanted, 1)
        share = np.arange(1, wanted + 1) / wanted
        gradients = warmup + share * (total - warmup)
        values = ask(posterior, read_model(posterior, draws))
        chains.append(Chain(values, gradients, float(warmup)))
    return chains


def _walk_walnuts(posterior, seed, tune, n_draws):
    """Draws (draw, unknown), gradients, and CPU-seconds of one chain of walnutpie."""
    import walnutpie

    compiled, count = compile_model(posterior), np.zeros(1, np.int64)
    callback = _count_calls(compiled.compiled_logp_func.address, compiled.user_data.ctypes.data)
    start = time.process_time()
    (draws,) = walnutpie.walnuts_pyfunc(
        (walnutpie.logp_cfunc_type(callback.address), count.ctypes.data), num_params=compiled.n_dim, num_chains=1,
        seed=seed, min_warmup_iter=tune, max_warmup_iter=tune, min_sampling_iter=n_draws, max_sampling_iter=n_draws,
    )  # fmt: skip
    return np.asarray(draws), int(count[0]), time.process_time() - start


@lru_cache
def _count_calls(address, data):
    """nutpie's compiled log density and gradient as a C function that counts its calls where its last argument points.

    Parameters
    ----------
    address : int, of nutpie's function
    data : int, of what it reads
    """
    import numba
    from numba import types

    # an address is a number to numba, and to the function it calls
    inner = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 3, ctypes.c_uint64)(address)

    @numba.cfunc(types.int32(types.uintp, types.voidptr, types.voidptr, types.voidptr, types.voidptr))
    def call(size, theta, slopes, value, count):
        numba.carray(count, (1,), np.int64)[0] += 1
        return types.int32(inner(size, theta, slopes, value, data))

    return call


def read_model(posterior, positions):
    """Unknowns as `list_positions` names them, of positions (draw, unknown) in the order of PyMC's model."""
    model, found, start = build(posterior), {}, 0
    initial = model.initial_point()
    for value in model.value_vars:
        size = initial[value.name].size
        name = value.name.removesuffix("_log__")
        part = positions[:, start : start + size].reshape(-1, *initial[value.name].shape)
        found[name if name == value.name else f"log_{name}"] = part
        start += size
    return found


# --- log densities in JAX: NumPyro and BlackJAX


@lru_cache
def make_flat(posterior):
    """The log density of `studies.reference` as a function of one vector, and the number of unknowns."""
    import jax
    from jax.flatten_util import ravel_pytree

    jax.config.update("jax_enable_x64", True)
    density = make_density(posterior)
    start, unravel = ravel_pytree({name: np.zeros(shape) for name, shape in list_positions(posterior).items()})
    return lambda x: density(unravel(x)), len(start)


def read_flat(posterior, positions):
    """Unknowns, each (draw, …), of vectors (draw, unknown) as `make_flat` takes them: in the order of their names."""
    found, start = {}, 0
    for name, shape in sorted(list_positions(posterior).items()):
        size = int(np.prod(shape))
        found[name] = positions[:, start : start + size].reshape(-1, *shape)
        start += size
    return found


def draw_start(posterior, key):
    """A vector to start from: weights from the prior, scales at 1."""
    import jax
    from jax.flatten_util import ravel_pytree

    shapes = list_positions(posterior)
    keys = dict(zip(shapes, jax.random.split(key, len(shapes)), strict=True))
    return ravel_pytree({
        name: 0 * jax.random.normal(keys[name], shape) if name.startswith("log_")
        else jax.random.normal(keys[name], shape)
        for name, shape in shapes.items()
    })[0]  # fmt: skip


def make_walk(step, place, thin):
    """A function of (carry, key), for `jax.jit`: `BLOCK` draws, every `thin`-th step of `step`.

    Parameters
    ----------
    step : function of (carry, key) to the next carry and the gradients it took
    place : function of a carry to a position (unknown,) or (chain, unknown)
    thin : int

    Returns
    -------
    function
        To the next carry, and (positions (draw, …), gradients (draw,)).
    """
    import jax

    def walk(carry, key):
        def advance(carry, key):
            carry, counts = jax.lax.scan(step, carry, jax.random.split(key, thin))
            return carry, (place(carry), counts.sum())

        return jax.lax.scan(advance, carry, jax.random.split(key, BLOCK))

    return walk


def run_programs(posterior, seed, budget, make, *, n_programs=4, n_chains=1):
    """Run a compiled program for each chain, or one for many chains, until its budget is spent.

    Parameters
    ----------
    make : function of (posterior, budget of a program) to (prepare, warm, walk): `prepare(key)` is not on the clock;
        `warm(key, prepared)` returns a carry and gradients; `walk` is as `make_walk` gives it

    Returns
    -------
    list of Chain
    """
    import jax

    from studies._bench.peers import time_cpu

    jax.config.update("jax_enable_x64", True)
    own, chains = budget.share(n_programs), []
    prepare, warm, walk = _compile(make, posterior, own)
    for k in range(n_programs):
        keys = jax.random.split(jax.random.key(derive(seed, k)), 3)
        prepared = prepare(keys[0])
        (carry, warmup), spent = time_cpu(lambda: warm(keys[1], prepared))  # noqa: B023
        values, gradients, warmup = [], [], float(warmup)
        clock, i = (warmup, spent), 0
        while not own.is_spent(*clock):
            key = jax.random.fold_in(keys[2], i)
            (carry, (positions, counts)), seconds = time_cpu(lambda: walk(carry, key))  # noqa: B023
            counts = np.asarray(counts, float).cumsum()
            gradients.append(clock[0] + counts)
            clock, i = (gradients[-1][-1], clock[1] + seconds), i + 1
            positions = np.asarray(positions).reshape(BLOCK * n_chains, -1)
            values.append(ask(posterior, read_flat(posterior, positions)).reshape(BLOCK, n_chains, -1))
        gradients = np.concatenate([*gradients, []]) / n_chains
        values = np.concatenate(values) if values else _no_draws(posterior)[:, None].repeat(n_chains, axis=1)
        chains += [Chain(values[:, c], gradients, warmup / n_chains) for c in range(n_chains)]
    return chains


@lru_cache
def _compile(make, posterior, budget):
    import jax

    prepare, warm, walk = make(posterior, budget)
    key = jax.random.key(0)
    prepared = prepare(key)
    warm = jax.jit(warm)
    carry = jax.eval_shape(warm, key, prepared)[0]
    return prepare, warm.lower(key, prepared).compile(), jax.jit(walk).lower(carry, key).compile()


def find_thin(budget, gradients, kept=KEPT):
    """Every how many steps, each of so many gradients, a program keeps a draw, so that its budget buys `kept` (int)."""
    return max(1, round(budget.gradients / gradients / kept))


def make_numpyro(posterior, budget, tune=1000):
    """NumPyro's NUTS; it starts between -2 and 2, as NumPyro does."""
    import jax
    from numpyro.infer import NUTS

    logp, size = make_flat(posterior)
    kernel = NUTS(potential_fn=lambda x: -logp(x))

    def prepare(key):
        start = jax.random.uniform(key, (size,), minval=-2.0, maxval=2.0)
        return kernel.init(key, tune, start, (), {})

    def step(state, _):
        state = kernel.sample(state, (), {})
        return state, state.num_steps

    def warm(_, state):
        state, counts = jax.lax.scan(step, state, None, length=tune)
        return state, counts.sum()

    return prepare, warm, make_walk(step, lambda state: state.z, 1)


def make_nuts(posterior, budget, tune=1000):
    """BlackJAX's NUTS with window adaptation."""
    import blackjax
    import jax

    logp, _ = make_flat(posterior)

    def warm(key, start):
        (state, tuned), count = adapt_window(logp, key, start, tune)
        return (state, tuned["step_size"], tuned["inverse_mass_matrix"]), count

    def step(carry, key):
        state, size, matrix = carry
        state, info = blackjax.nuts(logp, size, matrix).step(key, state)
        return (state, size, matrix), info.num_integration_steps

    return jax.jit(partial(draw_start, posterior)), warm, make_walk(step, lambda carry: carry[0].position, 1)


def adapt_window(logp, key, start, tune):
    """BlackJAX's window adaptation of NUTS: its result, and gradients."""
    import blackjax
    from blackjax.adaptation.base import get_filter_adapt_info_fn

    found, trace = blackjax.window_adaptation(
        blackjax.nuts, logp, adaptation_info_fn=get_filter_adapt_info_fn(info_keys={"num_integration_steps"})
    ).run(key, start, tune)
    return found, trace.info.num_integration_steps.sum()


TWO = 2  # gradients in a step of the integrator that BlackJAX's microcanonical samplers have by default


def make_mclmc(posterior, budget):
    """BlackJAX's MCLMC. Its tuner wants to know for how many steps it tunes."""
    import blackjax
    import jax

    logp, _ = make_flat(posterior)
    n_steps = int(budget.gradients / TWO / (1 + 0.1 + 0.1 * 4 / 3 + 0.1))
    kernel = blackjax.mcmc.mclmc.build_kernel()

    def warm(key, start):
        first, second = jax.random.split(key)
        state = blackjax.mcmc.mclmc.init(position=start, logdensity_fn=logp, rng_key=first)
        state, tuned, count = blackjax.mclmc_find_L_and_step_size(
            mclmc_kernel=kernel, num_steps=n_steps, state=state, rng_key=second, logdensity_fn=logp
        )
        return (state, tuned), TWO * count

    walk = make_walk(partial(step_mclmc, kernel, logp), lambda carry: carry[0].position, find_thin(budget, TWO))
    return jax.jit(partial(draw_start, posterior)), warm, walk


def step_mclmc(kernel, logp, carry, key):
    """One step of MCLMC, and its gradients."""
    state, tuned = carry
    state, _ = kernel(key, state, logp, tuned.inverse_mass_matrix, tuned.L, tuned.step_size)
    return (state, tuned), TWO


def make_mams(posterior, budget):
    """Adjusted MCLMC with trajectories of random length: two steps on average, as its tuner has it."""
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.mcmc.adjusted_mclmc_dynamic import rescale

    logp, _ = make_flat(posterior)
    n_draws = int(budget.gradients / 10)  # a draw takes four gradients, and to tune for it six: seen in a trial
    kernel = blackjax.mcmc.adjusted_mclmc_dynamic.build_kernel(
        integration_steps_fn=lambda key, mean: jnp.ceil(jax.random.uniform(key) * rescale(mean))
    )

    def warm(key, start):
        first, second = jax.random.split(key)
        state = blackjax.mcmc.adjusted_mclmc_dynamic.init(start, logp, first)
        state, tuned, count = blackjax.adjusted_mclmc_find_L_and_step_size(
            mclmc_kernel=kernel,
            logdensity_fn=logp,
            num_steps=n_draws,
            state=state,
            rng_key=second,
            target=0.9,
        )
        return (state, tuned), TWO * count

    def step(carry, key):
        state, tuned = carry
        state, info = kernel(
            key, state, logp, step_size=tuned.step_size, inverse_mass_matrix=tuned.inverse_mass_matrix,
            integration_steps_params=(tuned.L / tuned.step_size,),
        )  # fmt: skip
        return (state, tuned), TWO * info.num_integration_steps

    walk = make_walk(step, lambda carry: carry[0].position, find_thin(budget, 2 * TWO))
    return jax.jit(partial(draw_start, posterior)), warm, walk


def make_mile(posterior, budget, tune=50_000, train=2000):
    """MILE: each chain starts at a trained member of an ensemble; the energy may vary far more than MCLMC lets it."""
    import blackjax
    import jax
    import jax.numpy as jnp
    import optax
    from blackjax.adaptation.mclmc_adaptation import MCLMCAdaptationState

    logp, size = make_flat(posterior)
    kernel = blackjax.mcmc.mclmc.build_kernel()
    optimiser = optax.adamw(0.01, b1=0.9, b2=0.999, weight_decay=0.001)
    stages = jnp.linspace(0.5, 0.1, 9)  # their line, as stairs: eight tenths of the warm-up, and 0.1 for the rest
    tuner = partial(
        blackjax.mclmc_find_L_and_step_size, mclmc_kernel=kernel, logdensity_fn=logp, diagonal_preconditioning=False,
        num_effective_samples=100,
    )  # fmt: skip

    def warm(key, start):
        def descend(carry, _):
            x, memory = carry
            updates, memory = optimiser.update(jax.grad(lambda x: -logp(x))(x), memory, x)
            return (optax.apply_updates(x, updates), memory), None

        (x, _), _ = jax.lax.scan(descend, (start, optimiser.init(start)), None, length=train)
        keys = jax.random.split(key, len(stages) + 1)
        state = blackjax.mcmc.mclmc.init(position=x, logdensity_fn=logp, rng_key=keys[-1])
        length = jnp.maximum(jnp.sqrt(size), 15.0)
        tuned = MCLMCAdaptationState(length, 0.01 * jnp.ones(()), jnp.ones(size))

        def go_down(carry, given):
            key, variance = given
            state, tuned, _ = tuner(
                num_steps=tune // 10, state=carry[0], rng_key=key, params=carry[1], desired_energy_var=variance,
                frac_tune1=1.0, frac_tune2=0.0, frac_tune3=0.0,
            )  # fmt: skip
            return (state, tuned), None

        (state, tuned), _ = jax.lax.scan(go_down, (state, tuned), (keys[:-2], stages[:-1]))
        state, tuned, _ = tuner(
            num_steps=tune // 10, state=state, rng_key=keys[-2], params=tuned, desired_energy_var=stages[-1],
            frac_tune1=0.0, frac_tune2=1.0, frac_tune3=1.0,
        )  # fmt: skip
        return (state, tuned), train + TWO * tune // 10 * 10

    walk = make_walk(partial(step_mclmc, kernel, logp), lambda carry: carry[0].position, find_thin(budget, TWO))
    return jax.jit(partial(draw_start, posterior)), warm, walk


def make_meads(posterior, budget, tune=1000, first=(500, 300), seeds=20):
    """MEADS: generalised HMC in 64 chains at once, which start around the last draws of a short NUTS chain."""
    import blackjax
    import jax
    import jax.numpy as jnp

    logp, size = make_flat(posterior)
    adaptation = blackjax.meads_adaptation(logp, num_chains=MEMBERS, adaptation_info_fn=lambda *_: None)

    def warm(key, start):
        keys = jax.random.split(key, 5)
        (state, tuned), count = adapt_window(logp, keys[0], start, first[0])
        nuts = blackjax.nuts(logp, **tuned).step

        def step(state, key):
            state, info = nuts(key, state)
            return state, (state.position, info.num_integration_steps)

        _, (trail, counts) = jax.lax.scan(step, state, jax.random.split(keys[1], first[1]))
        last = trail[-seeds:]
        spread = jnp.maximum(last.std(axis=0), 0.05) * jax.random.uniform(keys[3], (MEMBERS, size), minval=-1.0)
        starts = last[jax.random.randint(keys[2], (MEMBERS,), 0, seeds)] + spread
        (states, found), _ = adaptation.run(keys[4], starts, tune)
        return (states, found), count + counts.sum() + MEMBERS * tune

    def step(carry, key):
        states, found = carry
        kernel = blackjax.ghmc(logp, **found).step
        states, _ = jax.vmap(kernel)(jax.random.split(key, MEMBERS), states)
        return (states, found), MEMBERS

    thin = find_thin(budget, MEMBERS, 32 * KEPT // MEMBERS)  # a short chain is not judged
    return jax.jit(partial(draw_start, posterior)), warm, make_walk(step, lambda carry: carry[0].position, thin)


def sample_laps(posterior, seed, budget):
    """LAPS: the last positions of its chains, which are independent draws, cut into four chains of a quarter each."""
    import jax
    from blackjax.adaptation import laps as blackjax_laps

    logp, size = make_flat(posterior)
    half = int(budget.gradients / CROWD / 2)
    mesh = jax.sharding.Mesh(jax.devices()[:1], "chains")
    _, in_step, _, state = blackjax_laps.laps(
        logp, partial(draw_start, posterior), size, half, half, CROWD, mesh, jax.random.key(seed), early_stop=False,
        diagnostics=False,
    )  # fmt: skip
    second = half // (15 * in_step) * 15 * in_step  # a draw takes 15 steps, and no part of one is made
    values = ask(posterior, read_flat(posterior, np.asarray(state.position))).reshape(4, CROWD // 4, -1)
    return [Chain(part, np.full(len(part), CROWD * (half + second) / 4), CROWD * half / 4) for part in values]


def sample_apart(make, posterior, seed, budget):
    """A run of four programs of one chain each."""
    return run_programs(posterior, seed, budget, make)


def sample_meads(posterior, seed, budget):
    """A run of one program of 64 chains."""
    return run_programs(posterior, seed, budget, make_meads, n_programs=1, n_chains=MEMBERS)


SAMPLE = {
    "nutpie": sample_nutpie,
    "nutpie, low rank": partial(sample_nutpie, adaptation="low_rank"),
    "nutpie, MCLMC": partial(sample_nutpie, sampler="mclmc"),
    "PyMC": sample_pymc,
    "NumPyro": partial(sample_apart, make_numpyro),
    "BlackJAX": partial(sample_apart, make_nuts),
    "PyMC, 400": partial(sample_pymc, tune=400),
    "NumPyro, 400": partial(sample_apart, partial(make_numpyro, tune=400)),
    "BlackJAX, 400": partial(sample_apart, partial(make_nuts, tune=400)),
    "BlackJAX, MCLMC": partial(sample_apart, make_mclmc),
    "BlackJAX, MAMS": partial(sample_apart, make_mams),
    "BlackJAX, MEADS": sample_meads,
    "BlackJAX, LAPS": sample_laps,
    "MILE": partial(sample_apart, make_mile),
    "WALNUTS": sample_walnuts,
}
