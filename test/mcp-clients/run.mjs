// `npm run test:mcp-clients`: clients of others list, call and sign in at servers of this package. Fails if one of
// them does not manage what it should.
import { programs } from './programs.mjs';
import { sdkClients } from './sdk-clients.mjs';

/** A program that never ends must not hold up the others. */
const MOST_MS = 180_000;

let failures = 0;
const wanted = process.argv[2] ?? '';
for (const [name, use] of Object.entries({ ...sdkClients, ...programs })) {
  if (!name.includes(wanted)) continue;
  const limit = Promise.withResolvers();
  const timer = setTimeout(
    () => limit.reject(new Error(`no end within ${MOST_MS / 1_000} seconds`)),
    MOST_MS,
  );
  const problem = await Promise.race([use(), limit.promise]).then(
    () => undefined,
    (error) => error,
  );
  clearTimeout(timer);
  console.log(`${problem === undefined ? '✓' : '✗'} ${name}`);
  if (problem === undefined) continue;
  failures += 1;
  console.log(`    ${String(problem.stack ?? problem).replaceAll('\n', '\n    ')}`);
}
process.exit(failures === 0 ? 0 : 1);
