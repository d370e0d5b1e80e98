// Writes a file, and is killed before the step of the file system that it is told: `node … MODULE ROOT STEP`.
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
  // How it gives a promise.
  fs[name] = Object.defineProperties(counted, Object.getOwnPropertyDescriptors(original));
}
syncBuiltinESMExports();
const { DiskFileSystem } = await import(module);
const files = new DiskFileSystem({ root });
const { stamp } = await files.read('a.txt');
left = Number(step);
await files.write('a.txt', new TextEncoder().encode('new'), { replaces: { stamp } });
