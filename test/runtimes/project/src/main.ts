import { report } from './report.js';

// Bundles that are CommonJS have no `await` at this level.
report().then(
  (text) => console.log(text),
  (error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  },
);
