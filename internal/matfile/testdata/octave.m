% Writes arrays of every type in every version, for make.py.
folder = argv(){1};
a = [1.5 -2 NaN; Inf 0 1e300];
arrays.double = a;
arrays.small = [1 2 3; -4 5 6];              % stored as integers
arrays.single = single([0.1 -2; 3 4; 5 1e30]);
arrays.complex = [1+2i 3-4i; 0.5i -6];
arrays.complex_single = single([1+0.5i; 2.25i]);
arrays.int8 = int8([-128 127; 0 1]);
arrays.uint16 = uint16([0 65535 7]);
arrays.int32 = int32([-2147483648; 2147483647]);
arrays.int64 = int64([-9007199254740993 5]);
arrays.logical = [true false; false true; true true];
arrays.sparse = sparse([1 3 3], [2 1 4], [1.5 -2 7], 3, 5);
arrays.sparse_complex = sparse([1 2], [2 1], [1+2i -3i], 2, 2);
arrays.sparse_logical = sparse([1 2], [2 2], [true true], 2, 3);
arrays.empty = zeros(0, 3);
arrays.cube = reshape((1:24) / 7, 2, 3, 4);
arrays.scalar = pi;
arrays.char = 'density, 0.1';
names = fieldnames(arrays);
for k = 1:numel(names)
  A = arrays.(names{k});
  Y = 1:3;                                    % another one after it
  save('-v6', fullfile(folder, [names{k} '_v6.mat']), 'A', 'Y');
  save('-v7', fullfile(folder, [names{k} '_v7.mat']), 'A', 'Y');
end
A = a; C = {1, 'two'}; S.field = 3; f = @(x) x + 1;
save('-v7', fullfile(folder, 'others_v7.mat'), 'C', 'S', 'A');
save('-v4', fullfile(folder, 'version4.mat'), 'A');
try
  save('-hdf5', fullfile(folder, 'hdf5.mat'), 'A');
end
