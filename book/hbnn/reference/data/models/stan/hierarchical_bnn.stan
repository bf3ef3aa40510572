// Eighteen rotated moons: a network 2-12-12-1 for each category, whose weights share normals that are learned.
data {
  int<lower=1> G;
  int<lower=1> N;
  int<lower=1> H;
  int<lower=1> M;
  array[G] matrix[N, 2] X;
  array[G, N] int<lower=0, upper=1> y;
  array[M] int<lower=1, upper=G> group_new;
  matrix[M, 2] X_new;
}
parameters {
  matrix[2, H] mu1;
  real<lower=0> sd1;
  array[G] matrix[2, H] z1;
  matrix[H, H] mu2;
  real<lower=0> sd2;
  array[G] matrix[H, H] z2;
  vector[H] mu3;
  real<lower=0> sd3;
  array[G] vector[H] z3;
}
model {
  to_vector(mu1) ~ std_normal();
  to_vector(mu2) ~ std_normal();
  mu3 ~ std_normal();
  sd1 ~ std_normal();
  sd2 ~ std_normal();
  sd3 ~ std_normal();
  for (g in 1:G) {
    to_vector(z1[g]) ~ std_normal();
    to_vector(z2[g]) ~ std_normal();
    z3[g] ~ std_normal();
    y[g] ~ bernoulli_logit(tanh(tanh(X[g] * (mu1 + sd1 * z1[g])) * (mu2 + sd2 * z2[g])) * (mu3 + sd3 * z3[g]));
  }
}
generated quantities {
  vector[M] p;
  real log_lik = 0;
  for (m in 1:M) {
    int g = group_new[m];
    p[m] = inv_logit(tanh(tanh(X_new[m] * (mu1 + sd1 * z1[g])) * (mu2 + sd2 * z2[g])) * (mu3 + sd3 * z3[g]));
  }
  for (g in 1:G)
    log_lik += bernoulli_logit_lpmf(
      y[g] | tanh(tanh(X[g] * (mu1 + sd1 * z1[g])) * (mu2 + sd2 * z2[g])) * (mu3 + sd3 * z3[g]));
}
