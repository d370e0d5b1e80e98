// Starts the files first that wait longest for others, so that no worker is left with one of them at the end. Jest
// knows how long a file takes only where it has run before, and a fresh clone never has.
import TestSequencer from '@jest/test-sequencer';

/** Parts of the paths of tests that take long, or wait: for engines, browsers, compilers and other processes. */
const LONG = [
  'test/rooms/engines/',
  'test/browser/',
  'test/rooms/inspector/page',
  'test/packed/',
  'test/flow/agent-command',
  'test/toolchains/',
  'test/rooms/testing/provider-conformance',
  'test/flow/satellite-example',
  'test/flow/chaos',
  'test/flow/fleet-example',
  'test/flow/kill-conversations',
  'test/flow/worker-command',
  'test/flow/conversations',
  'test/rooms/postgres/',
  'test/house/over-all-sources',
  'test/rooms/typegen/by-every-compiler',
  'test/rooms/cli/init',
  'test/flow/recorded-calls',
  'test/flow/mcp-command',
];

/** Whether a file is one of those, by its path. */
export function isLong(path) {
  return placeOf(path) < LONG.length;
}

function placeOf(path) {
  const index = LONG.findIndex((part) => path.replaceAll('\\', '/').includes(part));
  return index < 0 ? LONG.length : index;
}

export default class LongestFirst extends TestSequencer {
  sort(tests) {
    return [...super.sort(tests)].sort((a, b) => placeOf(a.path) - placeOf(b.path));
  }
}
