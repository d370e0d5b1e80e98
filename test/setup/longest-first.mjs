// Starts the files first that wait longest for others, so that no worker is left with one of them at the end. Jest
// knows how long a file takes only where it has run before, and a fresh clone never has.
import TestSequencer from '@jest/test-sequencer';

/** Parts of the paths of tests that wait: for engines, browsers, compilers and other processes. */
const WAITING = [
  'test/rooms/engines/',
  'test/browser/',
  'test/rooms/inspector/page',
  'test/packed/',
  'test/toolchains/',
  'test/flow/fleet-example',
  'test/flow/kill-conversations',
  'test/flow/conversations',
  'test/rooms/postgres/',
  'test/house/over-all-sources',
  'test/rooms/typegen/by-every-compiler',
  'test/flow/mcp-command',
];

export default class LongestFirst extends TestSequencer {
  sort(tests) {
    const place = ({ path }) => {
      const index = WAITING.findIndex((part) => path.replaceAll('\\', '/').includes(part));
      return index < 0 ? WAITING.length : index;
    };
    return [...super.sort(tests)].sort((a, b) => place(a) - place(b));
  }
}
