/* (H) What a server's list of a thousand tools costs, each time that it is asked for. */
import { median, rotated } from '../measure.mjs';
import { nestServer } from '../peers/mcp-nest.mjs';
import { sdkServer } from '../peers/mcp-sdk.mjs';
import { ourServer } from '../peers/toolwright-bridges.mjs';
import { amount } from '../table.mjs';

const COUNT = 1_000;

/** ms for all pages of `tools/list`; the first row is the SDK's own server. */
export async function measureListing({ quick }) {
  const runs = [];
  for (const [name, open] of [
    ['MCP SDK `McpServer` (zod)', sdkServer],
    ['**toolwright/mcp** `createMcpServer`', ourServer],
    ['mcp-nest (zod)', nestServer],
  ])
    runs.push({ name, transport: await open(namesOf(COUNT)), times: [] });
  for (let round = 0; round < (quick ? 3 : 21); round += 1) {
    for (const { transport, times } of rotated(runs, round)) {
      const since = performance.now();
      const count = await listAll(transport);
      times.push(performance.now() - since);
      if (count !== COUNT) throw new Error(`${count} of ${COUNT} tools were listed`);
    }
  }
  const [{ times: base }] = runs;
  const rows = runs.map(({ name, times }) => [
    name,
    amount(median(times)),
    amount(median(times.map((time, round) => time / base[round]))),
  ]);
  return { title: 'MCP `tools/list` of 1,000 tools in memory, ms', head: ['', 'list', '×'], rows };
}

/** Names of tools like `search` of the workloads. */
function namesOf(count) {
  return Array.from({ length: count }, (_, index) => ({ name: `search_${index}`, like: 'search' }));
}

async function listAll(transport) {
  let cursor;
  let count = 0;
  do {
    const { result } = await transport.request('tools/list', cursor === undefined ? {} : { cursor });
    count += result.tools.length;
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  return count;
}
