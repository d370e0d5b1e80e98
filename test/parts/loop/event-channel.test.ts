import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { LoopEvent } from 'toolwright';
import { EventChannel } from '../../../src/run/loop/events.js';

const text = (number: number): LoopEvent => ({ type: 'text-delta', text: String(number) });
const progress = (number: number): LoopEvent => ({
  type: 'call-progress',
  callId: 'c',
  tool: 't',
  arguments: {},
  update: number,
});

/** Returns whether a promise has settled, without waiting for it. */
async function isDone(work: Promise<unknown> | undefined): Promise<boolean> {
  return (await Promise.race([Promise.resolve(work).then(() => true), new Promise(setImmediate)])) === true;
}

/** Reads all remaining events of a channel that has ended. */
async function drain(channel: EventChannel): Promise<LoopEvent[]> {
  const events: LoopEvent[] = [];
  for (let next = await channel.read(); !next.done; next = await channel.read()) events.push(next.value);
  return events;
}

describe('event channel', () => {
  test('a writer waits until its event is read', async () => {
    const channel = new EventChannel();
    const written = channel.write(text(1));
    expect(await isDone(written)).toBe(false);
    expect(await channel.read()).toEqual({ value: text(1), done: false });
    expect(await isDone(written)).toBe(true);
  });

  test('a waiting reader gets the event at once, and the writer does not wait', async () => {
    const channel = new EventChannel();
    const read = channel.read();
    expect(channel.write(text(1))).toBeUndefined();
    expect(await read).toEqual({ value: text(1), done: false });
  });

  test('concurrent reads get consecutive events', async () => {
    const channel = new EventChannel();
    const reads = [channel.read(), channel.read(), channel.read()];
    void channel.write(text(1));
    void channel.write(text(2));
    channel.end();
    expect(await Promise.all(reads)).toEqual([
      { value: text(1), done: false },
      { value: text(2), done: false },
      { value: undefined, done: true },
    ]);
  });

  test('after the end, pending events can be read and later writes are ignored', async () => {
    const channel = new EventChannel();
    void channel.write(text(1));
    channel.end();
    expect(channel.write(text(2))).toBeUndefined();
    expect(await drain(channel)).toEqual([text(1)]);
  });

  test('when the reader leaves, writers are released and pending events are dropped', async () => {
    const channel = new EventChannel();
    const written = [channel.write(text(1)), channel.write(progress(2))];
    channel.abandon();
    expect(await Promise.all(written.map(isDone))).toEqual([true, true]);
    expect(channel.write(text(3))).toBeUndefined();
    expect(await drain(channel)).toEqual([]);
  });

  test('a flood of progress keeps only the newest reports, and all other events', async () => {
    const channel = new EventChannel();
    void channel.write(text(-1));
    const first = channel.write(progress(0));
    for (let number = 1; number < 1000; number += 1) void channel.write(progress(number));
    void channel.write(text(-2));
    expect(await isDone(first)).toBe(true);
    channel.end();
    const events = await drain(channel);
    expect(events).toHaveLength(256 + 2);
    expect([events[0], events[1], events.at(-2), events.at(-1)]).toEqual([
      text(-1),
      progress(744),
      progress(999),
      text(-2),
    ]);
  });

  test('reading progress frees space for more, also after a flood', async () => {
    const channel = new EventChannel();
    for (let number = 0; number < 300; number += 1) void channel.write(progress(number));
    for (let number = 44; number < 144; number += 1)
      expect((await channel.read()).value).toEqual(progress(number));
    for (let number = 300; number < 400; number += 1) void channel.write(progress(number));
    channel.end();
    const events = await drain(channel);
    expect(events).toEqual(Array.from({ length: 256 }, (_, index) => progress(index + 144)));
  });

  test('events are read exactly once and in order, for any order of reads and writes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 60 }), async (steps) => {
        const channel = new EventChannel();
        let written = 0;
        const reads: Promise<IteratorResult<LoopEvent, undefined>>[] = [];
        for (const isWrite of steps) {
          if (isWrite) void channel.write(text(written++));
          else reads.push(channel.read());
        }
        channel.end();
        const early = (await Promise.all(reads)).flatMap(({ value }) => (value === undefined ? [] : [value]));
        const all = [...early, ...(await drain(channel))];
        expect(all).toEqual(Array.from({ length: written }, (_, number) => text(number)));
      }),
    );
  });
});
