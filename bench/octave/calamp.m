% Blind calibration by cal-AMP, as one would write it in MATLAB: whole matrices,
% the squares of W stored, the posterior of s on a grid, fixed damping. Run by
% the bench command as
%   octave-cli calamp.m DIRECTORY REPEATS
% Prints the seconds of every repeat and the iterations; writes x.
arguments = argv();
directory = arguments{1};
repeats = str2double(arguments{2});

function v = load_floats(directory, name, rows, columns)
  file = fopen([directory '/' name '.f64']);
  v = fread(file, [columns, rows], 'double')';   % what is there is row-major
  fclose(file);
end

function [s, c] = posterior(n, tau, b, lo, hi)
  % Mean and variance of s^n exp(-tau s^2/2 + b s) on [lo, hi].
  mode = (b + sqrt(b .^ 2 + 4 * n * tau)) ./ (2 * tau);
  sd = 1 ./ sqrt(tau + n ./ mode .^ 2);
  mode = min(max(mode, lo), hi);
  from = max(lo, mode - 9 * sd);
  to = min(hi, mode + 9 * sd);
  grid = linspace(0, 1, 101);
  u = from + (to - from) .* grid - mode;
  h = u .* (b - tau .* mode - tau .* u / 2) + n * log1p(u ./ mode);
  w = exp(h - max(h, [], 2));
  w(:, [1 end]) /= 2;                             % trapezoids
  total = sum(w, 2);
  first = sum(w .* u, 2) ./ total;
  s = mode + first;
  c = sum(w .* (u - first) .^ 2, 2) ./ total;
end

function [x, c] = denoise(lambda, sigma, rho, v)
  % Posterior of an entry that is zero or drawn from N(0, v).
  odds = log(rho / (1 - rho)) + (lambda .^ 2 .* v ./ (sigma .* (v + sigma)) - log1p(v ./ sigma)) / 2;
  on = 1 ./ (1 + exp(-odds));
  m = lambda .* v ./ (v + sigma);
  x = on .* m;
  c = on .* (v .* sigma ./ (v + sigma) + (1 - on) .* m .^ 2);
end

function [x, s, t] = calamp(w, y, rho, v, noise, lo, hi, tolerance, damping)
  [m, n] = size(w);
  p = size(y, 2);
  w2 = w .^ 2;
  x = zeros(n, p);
  c = rho * v * ones(n, p);
  g = zeros(m, p);
  dg = g;
  settled = 0;
  for t = 1:2000
    variance = w2 * c;
    omega = w * x - variance .* g;
    d = variance + noise;
    [s, sc] = posterior(p, sum(y .^ 2 ./ d, 2), sum(y .* omega ./ d, 2), lo, hi);
    keep = damping * (t > 1);
    g = (1 - keep) * (s .* y - omega) ./ d + keep * g;
    dg = (1 - keep) * (sc .* y .^ 2 ./ d .^ 2 - 1 ./ d) + keep * dg;
    sigma = -1 ./ (w2' * dg);
    [new, newc] = denoise(x + sigma .* (w' * g), sigma, rho, v);
    change = max(sqrt(sum((new - x) .^ 2) ./ sum(new .^ 2)));
    x = (1 - keep) * new + keep * x;
    c = (1 - keep) * newc + keep * c;
    settled = (settled + 1) * (change < tolerance);
    if settled >= 3
      break
    end
  end
end

shape = load_floats(directory, 'shape', 1, 10);
w = load_floats(directory, 'W', shape(1), shape(2));
y = load_floats(directory, 'y', shape(1), shape(3));
seconds = zeros(1, repeats);
for k = 1:repeats
  start = [cputime(), time()];
  [x, s, t] = calamp(w, y, shape(4), shape(5), shape(6), shape(7), shape(8), shape(9), shape(10));
  seconds(k) = time() - start(2);
  processor(k) = cputime() - start(1);
end
printf('%.9g %.9g\n', [seconds; processor]);
printf('%d\n', t);
file = fopen([directory '/x-found.f64'], 'w');
fwrite(file, x', 'double');
fclose(file);
