function r = calamp(W, Y, varargin)
%CALAMP  Blind calibration from sparse signals, for MATLAB and Octave.
%   R = CALAMP(W, Y) recovers the signals and the calibration of the sensors from readings
%   Y = (W*X + noise) ./ s, where W (M-by-N) is known, the columns of X (N-by-P) are sparse, and s (M-by-1) is
%   neither known nor different from signal to signal. Nothing else is given: the model is learned from the
%   readings. A NaN in Y is a missing reading.
%
%   R = CALAMP(W, Y, 'density', 0.1, 's_range', [0.9 1.1], 'noise_var', 1e-6) fixes what is known. Every flag
%   of the command calamp solve can be given so, with _ for -; true for a flag without a value:
%   CALAMP(W, Y, 'max_iter', 200, 'report', 'R.html', 'compare', true). Nominal phases of complex gains, 's_phase' (M-by-1), and a
%   truth, 'X0' (N-by-P) and 's0' (M-by-1), are arrays, and so is what differs between sensors, readings or entries: 'noise_var' (M-by-1 or
%   M-by-P), 'density' (N-by-1), 'groups', 'sensors'. Where Y is complex, signals and gains are.
%
%   R has the arrays of the command's result: x, x_var (N-by-P), s, s_var, gain (M-by-1; gain = 1./s), s_lo, s_hi
%   (95 %), converged (1-by-P), residual (M-by-P) and what was learned, e.g. density and noise_var; and json, a
%   structure of the command's summary: json.status, json.warnings, json.iterations.
%
%   The command must be in the path, or its place in the environment variable CALAMP.
%
%   Example:  r = calamp(W, Y, 's_range', [0.8 1.2]);  plot(r.gain);  imagesc(r.x)

command = getenv('CALAMP');
if isempty(command), command = 'calamp'; end

folder = tempname();
mkdir(folder);
clean = onCleanup(@() remove(folder));
problem = fullfile(folder, 'P.mat');
result = fullfile(folder, 'R.mat');
said = fullfile(folder, 'said.txt');
data = struct('W', {W}, 'Y', {Y});
line = [quoted(command) ' solve ' quoted(problem) ' --json --quiet -o ' quoted(result)];
for k = 1:2:numel(varargin)
  name = ['--' strrep(varargin{k}, '_', '-')];
  value = varargin{k+1};
  if any(strcmp(varargin{k}, {'s_phase', 'X0', 's0'}))
    data.(varargin{k}) = value;
  elseif islogical(value)
    if value, line = [line ' ' name]; end %#ok<AGROW>
  elseif ischar(value)
    line = [line ' ' name ' ' quoted(value)]; %#ok<AGROW>
  elseif numel(value) > 3 % of sensors, readings or entries
    file = fullfile(folder, [varargin{k} '.mat']);
    array = struct(varargin{k}, {value});
    save(file, '-struct', 'array', '-v6');
    line = [line ' ' name ' ' quoted(file)]; %#ok<AGROW>
  else
    line = [line ' ' name ' ' strjoin(arrayfun(@(v) sprintf('%.17g', v), value(:)', 'UniformOutput', false), ',')]; %#ok<AGROW>
  end
end
save(problem, '-struct', 'data', '-v6');
[code, text] = system([line ' 2> ' quoted(said)]);
if code == 127 || (ispc && code == 9009) % what shells say where there is no such command
  error('calamp:command', ['calamp: there is no command %s: put the folder of the program calamp into the path, with ' ...
    'setenv(''PATH'', …), or its place into the environment variable CALAMP'], command);
end
if ~exist(result, 'file')
  error('calamp:failed', '%s', strtrim(fileread(said)));
end
r = load(result);
r.converged = r.converged(:)';
r.json = jsondecode(text);
if code ~= 0
  warning('calamp:notConverged', 'calamp: %s: %s', r.json.status, r.json.reason);
end
for w = r.json.warnings(:)'
  if iscell(w), w = w{1}; end %#ok<FXSET>
  warning(['calamp:' strrep(w.code, '-', '_')], 'calamp: %s: %s', w.code, w.message);
end
end

function text = quoted(text)
text = ['"' strrep(text, '"', '\"') '"'];
end

function remove(folder)
delete(fullfile(folder, '*'));
rmdir(folder);
end
