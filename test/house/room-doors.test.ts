import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { ROOT, readText } from './repository.js';
import { mappedRooms } from './room-map.js';

const SNAPSHOT = 'test/house/room-doors.txt';

test('what rooms offer to each other is what room-doors.txt says', () => {
  const now = mappedRooms()
    .filter(({ offers }) => offers.length > 0)
    .map(({ name, offers }) => {
      const names = new Set(offers.map((offered) => offered.name));
      return [`${name} (${names.size})`, ...[...names].sort().map((offered) => `  ${offered}`), ''].join(
        '\n',
      );
    })
    .join('\n');
  if (process.env.UPDATE_ROOM_DOORS) writeFileSync(join(ROOT, SNAPSHOT), now);
  // Another name that rooms share is a decision: npm run map
  expect(now).toBe(readText(SNAPSHOT));
});
