// Keeps one core busy until the parent process exits.
const parent = process.ppid;
let nextCheck = 0;
for (;;) {
  if (performance.now() < nextCheck) continue;
  nextCheck = performance.now() + 500;
  if (process.ppid !== parent) process.exit();
}
