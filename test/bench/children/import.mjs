/* How long one import takes in an empty process, and what it leaves in memory. */
const specifier = process.argv[2];
const since = performance.now();
if (specifier !== 'nothing') await import(specifier);
const ms = performance.now() - since;
console.log(JSON.stringify({ ms, rss: process.memoryUsage.rss() / 1_048_576 }));
// Some packages keep the process alive.
process.exit(0);
