// Writes a file and kills itself before the given step of the file system: `node … MODULE ROOT STEP`.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const [, , module, root, step] = process.argv;
let left = Number.POSITIVE_INFINITY;
for (const name of Object.keys(fs)) {
  const original = fs[name];
  if (typeof original !== 'function' || !/^[a-z]/.test(name)) continue;
  const counted = (...args) => {
    left -= 1;
    if (left === 0) process.kill(process.pid, 'SIGKILL');
    return original(...args);
  };
  // Copies the properties too, such as the promise form for `promisify`.
  fs[name] = Object.defineProperties(counted, Object.getOwnPropertyDescriptors(original));
}
syncBuiltinESMExports();
const { DiskFileSystem } = await import(module);
const files = new DiskFileSystem({ root });
const { stamp } = await files.read('a.txt');
left = Number(step);
await files.write('a.txt', new TextEncoder().encode('new'), { replaces: { stamp } });
