// Keeps one core busy for as long as the process that started it lives.
const parent = process.ppid;
let next = 0;
for (;;) {
  if (performance.now() < next) continue;
  next = performance.now() + 500;
  if (process.ppid !== parent) process.exit();
}
