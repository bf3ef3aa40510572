"""What `make bench` measures: our engine and its peers, other ways to fit the book's models, and what they cost.

- `peers`: the hierarchical network as a JAX density and as a plain PyMC model; NUTS by BlackJAX, NumPyro, PyMC, nutpie
- `gradients`: microseconds for one gradient of its log posterior
- `flat`: eighteen networks of their own, one after another and all at once
- `advi`: mean-field ADVI on the flat network with PyMC's loop and as one compiled loop

Nothing here uses `hbnn.fusion._loglik`: a peer that shares the kernel would not check it.

All times are CPU seconds of the process, all its threads together. To compare like with like, give every engine one
core and one thread, before Python starts:

    XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1" taskset -c 0 python ...

The other threads (BLAS, Numba) are held to one by `bookkit.environment`.
"""

import jax

jax.config.update("jax_enable_x64", True)  # before any array is made: JAX computes in float32 otherwise
