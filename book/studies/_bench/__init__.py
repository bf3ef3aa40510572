"""What `make bench` measures: what a gradient costs, and what a posterior costs, with `fuse` and with its best rivals.

- `gradients`: microseconds of one gradient by stock PyMC's backends, by JAX written by hand, and by `fuse`
- `typings`: the same of thirty networks as other people have typed them
- `samplers`: CPU seconds of effective draws by nutpie, NumPyro and BlackJAX
- `peers`: the network's density in JAX, and the samplers; other studies use them too
- `libmvec`: stock Numba with the vector functions that it lacks
- `bound`: how fast the arithmetic alone would be

All times are CPU seconds of one process with one thread.
"""

import jax

jax.config.update("jax_enable_x64", True)  # before any array is made: JAX computes in float32 otherwise
