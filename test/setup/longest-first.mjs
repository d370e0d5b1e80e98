// Starts long test files first, so that the run does not end with one worker on a long file. Jest itself sorts by
// recorded durations, which a fresh clone does not have.
import TestSequencer from '@jest/test-sequencer';

/** Parts of the paths of long tests, which mostly wait for engines, browsers, compilers and other processes. */
const LONG = [
  'test/flow/worker-command',
  'test/parts/engines/broker-away',
  'test/parts/engines/',
  'test/browser/',
  'test/parts/inspector/page',
  'test/packed/',
  'test/flow/agent-command',
  'test/toolchains/',
  'test/parts/testing/provider-conformance',
  'test/flow/satellite-example',
  'test/flow/chaos',
  'test/flow/fleet-example',
  'test/flow/kill-conversations',
  'test/flow/conversations',
  'test/parts/postgres/',
  'test/structure/source-rules',
  'test/parts/typegen/by-every-compiler',
  'test/parts/cli/init',
  'test/flow/recorded-calls',
  'test/flow/mcp-command',
];

export function isLong(path) {
  return rankOf(path) < LONG.length;
}

function rankOf(path) {
  const index = LONG.findIndex((part) => path.replaceAll('\\', '/').includes(part));
  return index < 0 ? LONG.length : index;
}

const isGroup = ({ path }) => path.replaceAll('\\', '/').includes('/test-groups/');

// Jest requires a default export.
export default class LongestFirst extends TestSequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    const long = sorted.filter(({ path }) => isLong(path));
    const others = sorted.filter(({ path }) => !isLong(path));
    const rest = [...others.filter(isGroup), ...others.filter((test) => !isGroup(test))];
    long.sort((a, b) => rankOf(a.path) - rankOf(b.path));
    // Alternate waiting tests with computing tests, so that the processor stays busy.
    return long
      .flatMap((test, rank) => [test, ...rest.slice(rank, rank + 1)])
      .concat(rest.slice(long.length));
  }
}
