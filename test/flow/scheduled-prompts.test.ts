import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { TestSchemas } from '../parts/postgres/test-schema.js';
import { describePostgres } from '../services/services.js';
import { runs } from '../setup/runs.js';
import { type Clock, type Opened, ScheduleStory, storySteps, withClock } from './schedule-story.js';

const folder = mkdtempSync(join(tmpdir(), 'toolwright-schedules-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

const TITLE = 'Conversations: every due time of a schedule becomes one turn, whenever processes die';

/** Steps in any order, with processes that start and die between any two writes. */
async function tellStories(open: (clock: Clock) => Opened | Promise<Opened>, numRuns: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(storySteps, async (steps) => {
      const clock = { now: Date.parse('2026-11-23T09:30:00Z') };
      const opened = await open(clock);
      const story = new ScheduleStory(opened, clock);
      try {
        for (const step of steps) await story.take(step);
        await story.end();
        expect(await story.entered()).toEqual(story.expected());
        expect(await story.kept()).toEqual(story.left());
      } finally {
        await story.close();
        await opened.close();
      }
    }),
    { numRuns },
  );
}

describe('scheduled prompts in memory', () => {
  test(TITLE, () =>
    tellStories(
      (clock) => ({ store: new MemoryRunStore({ now: () => clock.now }), close: () => {} }),
      runs(60),
    ),
  );
});

describe('scheduled prompts in SQLite', () => {
  test(TITLE, () =>
    tellStories((clock) => {
      files += 1;
      const path = join(folder, `${files}.sqlite`);
      const store = new SqliteRunStore({ path, now: () => clock.now });
      const other = new SqliteRunStore({ path, now: () => clock.now });
      return {
        store,
        other,
        close() {
          store.close();
          other.close();
        },
      };
    }, runs(25)),
  );
});

describePostgres('scheduled prompts in PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);

  test(TITLE, () =>
    tellStories(async (clock) => {
      const schema = schemas.newSchema();
      const store = new PostgresRunStore({ connectionString: service.url, schema });
      await store.migrate();
      // The clock of the server cannot be advanced, so the clock of the test determines what is due.
      return { store: withClock(store, clock), close: () => store.close() };
    }, runs(6)),
  );
});
