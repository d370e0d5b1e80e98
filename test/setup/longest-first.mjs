// Starts the files first that wait longest for others, so that no worker is left with one of them at the end. Jest
// knows how long a file takes only where it has run before, and a fresh clone never has.
import TestSequencer from '@jest/test-sequencer';

/** Parts of the paths of tests that take long, or wait: for engines, browsers, compilers and other processes. */
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
  'test/structure/over-all-sources',
  'test/parts/typegen/by-every-compiler',
  'test/parts/cli/init',
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

const isGroup = ({ path }) => path.replaceAll('\\', '/').includes('/test-groups/');

// Jest demands a default export.
export default class LongestFirst extends TestSequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    const long = sorted.filter(({ path }) => isLong(path));
    const others = sorted.filter(({ path }) => !isLong(path));
    const rest = [...others.filter(isGroup), ...others.filter((test) => !isGroup(test))];
    long.sort((a, b) => placeOf(a.path) - placeOf(b.path));
    // What waits beside what computes: the ones leave the processor to the others.
    return long
      .flatMap((test, place) => [test, ...rest.slice(place, place + 1)])
      .concat(rest.slice(long.length));
  }
}
