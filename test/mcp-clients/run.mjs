// `npm run test:mcp-clients`: MCP clients of other projects list tools, call them and sign in at our servers.
import { programs } from './programs.mjs';
import { sdkClients } from './sdk-clients.mjs';

/** A program that hangs must not block the others. */
const LIMIT_MS = 180_000;

let failures = 0;
const filter = process.argv[2] ?? '';
for (const [name, runScenario] of Object.entries({ ...sdkClients, ...programs })) {
  if (!name.includes(filter)) continue;
  const limit = Promise.withResolvers();
  const timer = setTimeout(
    () => limit.reject(new Error(`did not finish within ${LIMIT_MS / 1_000} seconds`)),
    LIMIT_MS,
  );
  const problem = await Promise.race([runScenario(), limit.promise]).then(
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
