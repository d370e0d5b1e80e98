import fc from 'fast-check';

/** One random run: replies, limits, throwing listeners, and when it is aborted. */
export interface RandomRun {
  readonly replies: readonly unknown[];
  readonly limits: Readonly<Record<string, unknown>>;
  readonly throwingLogger: boolean;
  readonly listener: 'none' | 'silent' | 'throws';
  /** The number of the event (a request or the start of a tool) at which the run is aborted. */
  readonly abortAt: number;
}

const names = fc.constantFrom(
  'typed',
  'odd',
  'slow',
  'never',
  'sequential',
  'contextual',
  'callback',
  'background',
  'progress',
  'client',
  'no_such_tool',
  'constructor',
  '__proto__',
  '',
  'not a name!',
);

const args = fc.oneof(
  fc.record({ what: fc.constantFrom('text', 'circular', 'thrown text', 'thrown getter', 'bigint', 'proxy') }),
  fc.constantFrom<unknown>(
    { n: 1 },
    { n: '1' },
    { n: 'one' },
    {},
    '{"n":1}',
    '{"n":',
    '',
    'null',
    '[1]',
    '"{\\"n\\":1}"',
    null,
    undefined,
    7,
    [1],
    { n: 1n },
  ),
);

const call = fc.record(
  { id: fc.constantFrom<unknown>('a', 'b', 'call_1', 'call_2', '', null, 3), name: names, arguments: args },
  { requiredKeys: ['name'] },
);

const reply = fc.record(
  {
    content: fc.constantFrom<unknown>('', 'text', null),
    toolCalls: fc.oneof(fc.array(call, { maxLength: 5 }), fc.constantFrom(null, [null])),
    finishReason: fc.constantFrom('stop', 'tool_calls', 'length', 'content_filter'),
    usage: fc.constantFrom({ inputTokens: 1, outputTokens: 1, totalTokens: 2 }, null),
  },
  { requiredKeys: [] },
);

/** Random runs. Most replies call tools, some are invalid, some requests fail. */
export const arbitraryRun: fc.Arbitrary<RandomRun> = fc.record({
  replies: fc.array(
    fc.oneof(
      { arbitrary: reply, weight: 12 },
      { arbitrary: fc.constantFrom('down', null, 'nonsense'), weight: 1 },
    ),
    { maxLength: 6 },
  ),
  limits: fc.record(
    {
      maxIterations: fc.nat(6),
      maxRetries: fc.nat(3),
      maxConcurrency: fc.constantFrom(1, 2, 3),
      onLimit: fc.constantFrom('return', 'answer'),
    },
    { requiredKeys: [] },
  ),
  throwingLogger: fc.boolean(),
  listener: fc.constantFrom('none', 'silent', 'throws'),
  abortAt: fc.oneof(fc.constant(-1), fc.nat(12)),
});
