// Theophylline: four tanh shapes for all patients, normal read-outs of each patient, integrated out.
functions {
  matrix find_units(vector x, real x0, vector w, vector b) {
    int n = rows(w);
    matrix[rows(x), n + 1] h = rep_matrix(1, rows(x), n + 1);
    for (j in 1:n)
      h[, j] = tanh(x * w[j] + b[j]) - tanh(x0 * w[j] + b[j]);
    return h;
  }
}
data {
  int<lower=1> N;
  int<lower=1> G;
  int<lower=1> H;
  int<lower=1> M;
  int<lower=1> K;
  vector[N] x;
  vector[N] y;
  array[N] int<lower=1, upper=G> group;  // rows of a patient stand together
  real x0;
  vector[M] x_new;
  vector[K] x_own;
  array[K] int<lower=1, upper=G> group_own;
}
transformed data {
  array[G] int first = rep_array(0, G);
  array[G] int size = rep_array(0, G);
  for (i in 1:N) {
    if (size[group[i]] == 0)
      first[group[i]] = i;
    size[group[i]] += 1;
  }
}
parameters {
  vector[H] w;
  vector[H] b;
  vector[H + 1] mu;
  real<lower=0> tau_shape;
  real<lower=0> tau_level;
  real<lower=0> sigma;
}
transformed parameters {
  vector[H + 1] tau = append_row(rep_vector(tau_shape, H), tau_level);
}
model {
  matrix[N, H + 1] h = find_units(x, x0, w, b);
  w ~ std_normal();
  b ~ std_normal();
  mu ~ std_normal();
  tau_shape ~ std_normal();
  tau_level ~ std_normal();
  sigma ~ std_normal();
  for (g in 1:G) {
    matrix[size[g], H + 1] own = block(h, first[g], 1, size[g], H + 1);
    segment(y, first[g], size[g]) ~ multi_normal(
      own * mu, add_diag(tcrossprod(diag_post_multiply(own, tau)), square(sigma)));
  }
}
generated quantities {
  vector[M] curve;
  vector[M] apart;
  vector[K] own;
  real log_lik = 0;
  {
    matrix[M, H + 1] h_new = find_units(x_new, x0, w, b);
    matrix[K, H + 1] h_own = find_units(x_own, x0, w, b);
    matrix[N, H + 1] h = find_units(x, x0, w, b);
    array[G] vector[H + 1] readout;
    curve = h_new * mu;
    apart = sqrt(square(h_new) * square(tau));
    for (g in 1:G) {
      matrix[size[g], H + 1] seen = block(h, first[g], 1, size[g], H + 1);
      vector[size[g]] rest = segment(y, first[g], size[g]) - seen * mu;
      matrix[size[g], size[g]] S = add_diag(tcrossprod(diag_post_multiply(seen, tau)), square(sigma));
      readout[g] = mu + square(tau) .* (seen' * mdivide_left_spd(S, rest));
      log_lik += multi_normal_lpdf(rest | rep_vector(0, size[g]), S);
    }
    for (k in 1:K)
      own[k] = h_own[k] * readout[group_own[k]];
  }
}
