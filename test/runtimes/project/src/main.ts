import { report } from './report.js';

// CommonJS bundles have no top-level `await`.
report().then(
  (text) => console.log(text),
  (error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  },
);
