/* The cost of listing a thousand tools of an MCP server. */
import { median, rotated } from '../measure.mjs';
import { nestServer } from '../peers/mcp-nest.mjs';
import { sdkServer } from '../peers/mcp-sdk.mjs';
import { ownServer } from '../peers/toolwright-bridges.mjs';
import { formatNumber } from '../table.mjs';

const COUNT = 1_000;

/** ms for all pages of `tools/list`; the first row is the server of the SDK. */
export async function measureListing({ quick }) {
  const runs = [];
  for (const [name, open] of [
    ['MCP SDK `McpServer` (zod)', sdkServer],
    ['**toolwright/mcp** `createMcpServer`', ownServer],
    ['mcp-nest (zod)', nestServer],
  ])
    runs.push({ name, transport: await open(createTools(COUNT)), times: [] });
  for (let round = 0; round < (quick ? 3 : 21); round += 1) {
    for (const { transport, times } of rotated(runs, round)) {
      const startedAt = performance.now();
      const count = await listAll(transport);
      times.push(performance.now() - startedAt);
      if (count !== COUNT) throw new Error(`${count} of ${COUNT} tools were listed`);
    }
  }
  const [{ times: base }] = runs;
  const rows = runs.map(({ name, times }) => [
    name,
    formatNumber(median(times)),
    formatNumber(median(times.map((time, round) => time / base[round]))),
  ]);
  return { title: 'MCP `tools/list` of 1,000 tools in memory, ms', head: ['', 'list', '×'], rows };
}

/** Tools like `search` of the workloads. */
function createTools(count) {
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
