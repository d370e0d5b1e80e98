import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { discoverTools, ToolRegistry, Toolset } from 'toolwright';
import { BuiltinTools, createCurrentTimeTool, getCurrentTimeTool } from 'toolwright/builtin';

const INSTANT = new Date('2024-01-15T15:30:00.987Z');
const tools = new ToolRegistry().register(createCurrentTimeTool({ now: () => INSTANT }));

describe('getCurrentTimeTool', () => {
  test('returns 2024-01-15T10:30:00-05:00 for America/New_York', async () => {
    const result = await tools.execute('get_current_time', { timezone: 'America/New_York' });
    expect(result).toMatchObject({
      forLLM: '2024-01-15T10:30:00-05:00',
      isError: false,
      details: { utcTimestamp: INSTANT.getTime() },
    });
  });

  test.each([
    ['UTC', '2024-01-15T15:30:00+00:00'],
    ['utc', '2024-01-15T15:30:00+00:00'],
    ['Europe/Berlin', '2024-01-15T16:30:00+01:00'],
    ['Asia/Kathmandu', '2024-01-15T21:15:00+05:45'],
    ['Pacific/Auckland', '2024-01-16T04:30:00+13:00'],
    [' Asia/Tokyo ', '2024-01-16T00:30:00+09:00'],
  ])('for %s it returns %s', async (timezone, text) => {
    expect((await tools.execute('get_current_time', { timezone })).forLLM).toBe(text);
  });

  test.each(['Mars/Base', 'America', '\u0000', '__proto__'])(
    'the unknown zone %j is an error result with the time in UTC',
    async (timezone) => {
      const { forLLM, isError } = await tools.execute('get_current_time', { timezone });
      expect({ forLLM, isError }).toEqual({
        forLLM: `Invalid timezone: ${timezone}. Current UTC time: 2024-01-15T15:30:00Z`,
        isError: true,
      });
    },
  );

  test.each([[{}], [{ timezone: '' }], [{ timezone: null }]])(
    'without a zone (%j) it uses the time zone of the machine',
    async (args) => {
      const { forLLM } = await tools.execute('get_current_time', args);
      expect(forLLM).toMatch(/^2024-01-1[456]T\d\d:\d\d:00[+-]\d\d:\d\d$/);
      expect(new Date(forLLM).toISOString()).toBe('2024-01-15T15:30:00.000Z');
    },
  );

  test('in every zone and at every second, the returned text represents that instant', async () => {
    const second = fc.integer({ min: 0, max: 4_102_444_800 });
    const law = fc.asyncProperty(
      second,
      fc.constantFrom(...Intl.supportedValuesOf('timeZone')),
      async (time, timezone) => {
        const registry = new ToolRegistry().register(
          createCurrentTimeTool({ now: () => new Date(time * 1000) }),
        );
        const { forLLM } = await registry.execute('get_current_time', { timezone });
        // Until 1972, Liberia was 44 minutes and 30 seconds behind UTC; ISO 8601 has no such offset.
        if (!/:\d\d:\d\d$/.test(forLLM.slice(19))) expect(new Date(forLLM).getTime()).toBe(time * 1000);
      },
    );
    await fc.assert(law);
  });

  test('the tool with the system clock returns the current time', async () => {
    const registry = new ToolRegistry().register(getCurrentTimeTool);
    const before = Math.floor(Date.now() / 1000) * 1000;
    const { forLLM } = await registry.execute('get_current_time', { timezone: 'UTC' });
    expect(new Date(forLLM).getTime()).toBeGreaterThanOrEqual(before);
    expect(new Date(forLLM).getTime()).toBeLessThanOrEqual(Date.now());
  });

  test('is read-only and has an optional zone', () => {
    expect(getCurrentTimeTool).toMatchObject({
      name: 'get_current_time',
      annotations: { readOnly: true },
      parameters: { required: [] },
    });
  });
});

describe('BuiltinTools', () => {
  test('a subclass of the toolset can replace the clock', async () => {
    @Toolset()
    class FrozenTools extends BuiltinTools {
      protected override now(): Date {
        return INSTANT;
      }
    }
    const registry = new ToolRegistry().register(...discoverTools({ toolsets: [FrozenTools] }));
    const { forLLM } = await registry.execute('get_current_time', { timezone: 'Asia/Tokyo' });
    expect(forLLM).toBe('2024-01-16T00:30:00+09:00');
  });
});
