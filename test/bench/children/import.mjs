/* Measures the time of an import in an empty process, and the memory afterwards. */
const specifier = process.argv[2];
const startedAt = performance.now();
if (specifier !== 'nothing') await import(specifier);
const ms = performance.now() - startedAt;
console.log(JSON.stringify({ ms, rss: process.memoryUsage.rss() / 1_048_576 }));
// Some packages keep the process alive.
process.exit(0);
