// Two moons: a network 2-5-5-1 of tanh units without biases, standard normal weights, Bernoulli labels.
data {
  int<lower=1> N;
  int<lower=1> H;
  int<lower=1> M;
  matrix[N, 2] X;
  array[N] int<lower=0, upper=1> y;
  matrix[M, 2] X_new;
}
parameters {
  matrix[2, H] w1;
  matrix[H, H] w2;
  vector[H] w3;
}
model {
  to_vector(w1) ~ std_normal();
  to_vector(w2) ~ std_normal();
  w3 ~ std_normal();
  y ~ bernoulli_logit(tanh(tanh(X * w1) * w2) * w3);
}
generated quantities {
  vector[M] p = inv_logit(tanh(tanh(X_new * w1) * w2) * w3);
  real log_lik = bernoulli_logit_lpmf(y | tanh(tanh(X * w1) * w2) * w3);
}
