import type {
  AssistantMessage,
  LLMRequest,
  LLMResponse,
  Message,
  ResponseFormat,
  ToolCall,
  ToolChoice,
  ToolMessage,
} from '../../../core/contract/llm-provider.js';
import type { ContentPart } from '../../../core/contract/tool-result.js';
import { canonicalJson, isRecord, jsonType, parsedJson, plainJson } from '../../../core/kernel/json.js';
import { type Bench, type CaseDrafts, LOOK_UP, QUESTION, SAMPLE_TOOLS } from './bench.js';
import { BrokenRule, expectSame, expectThat } from './expectations.js';

const { name } = LOOK_UP.function;
const CALLS = [
  { id: 'call_a1', name, arguments: '{"city":"Oslo","days":3}' },
  { id: 'call_b2', name, arguments: '{"city":"Rome","days":5}' },
] as const;
const DIGITS = '12345678901234567891';
/** Base64 and texts that a faulty copy would change. */
const SEALED = ['gAAAAAB+/x==\u2028"\\ é🔏', 'second+/=='] as const;
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const PDF = 'JVBERi0xLjQKJeLjz9MKMSAwIG9iago8PD4+CmVuZG9iagp0cmFpbGVyCjw8Pj4KJSVFT0YK';

/** Sends the next request, after a reply and the results of its calls. */
async function askNext(
  bench: Bench,
  history: readonly Message[],
  more: Partial<LLMRequest> = {},
): Promise<LLMResponse> {
  return bench.reply({ text: 'Done' }, { messages: [QUESTION, ...history], ...more });
}

/** Checks that the model received the texts in this order. */
function expectSent(bench: Bench, ...texts: readonly string[]): void {
  let last = -1;
  for (const text of texts) {
    const place = indexOfText(bench.lastSent, text);
    expectThat(place >= 0, `the model does not receive ${JSON.stringify(text)}`);
    expectThat(place >= last, `the model receives ${JSON.stringify(text)} in the wrong order`);
    last = place;
  }
}

/** Checks that the model received a text at any place. */
function expectContained(bench: Bench, text: string, what: string): void {
  expectThat(indexOfText(bench.lastSent, text) >= 0, `the model does not receive ${what}`);
}

async function expectAttached(bench: Bench, part: ContentPart & { readonly data: string }): Promise<void> {
  const reply = await bench.reply({ calls: CALLS });
  const history = historyAfter(reply, ({ id }) =>
    id === reply.toolCalls[0]?.id
      ? { content: 'See here', parts: [{ type: 'text', content: 'See here' }, part] }
      : { content: 'Sunny' },
  );
  await askNext(bench, history);
  expectSent(bench, 'See here');
  expectSent(bench, 'Sunny');
  expectContained(bench, part.data, `the ${part.type} of the result`);
}

async function expectShown(bench: Bench, part: ContentPart & { readonly data: string }): Promise<void> {
  const content = [{ type: 'text', text: 'What is this?' }, part];
  await bench.reply({ text: 'Done' }, { messages: [{ role: 'user', content }] });
  expectSent(bench, 'What is this?');
  expectContained(bench, part.data, `the ${part.type} of a user message`);
}

/** A reply with a call whose arguments are this text. */
function replyWith(text: string): LLMResponse {
  const toolCalls = [{ id: 'call_a1', name, arguments: text }];
  return { content: '', toolCalls, finishReason: 'tool_calls' };
}

/** Cases about the messages that a model receives. */
export const REQUEST_CASES: CaseDrafts = {
  'offers only the tools of the request, not those of earlier requests': {
    rule: '`tools` of LLMRequest are the tools that the model receives: name, description and parameters',
    needs: ['sent'],
    async run(bench) {
      await bench.reply({ text: 'Done' });
      for (const { function: tool } of SAMPLE_TOOLS) expectSent(bench, tool.name);
      expectContained(bench, LOOK_UP.function.description, 'the description of a tool');
      expectContained(bench, 'Name of the city', 'the parameters of a tool');
      await bench.reply({ text: 'Done' }, { tools: undefined });
      expectThat(
        indexOfText(bench.lastSent, name) < 0,
        `the model receives ${name}, which is not a tool of the request`,
      );
    },
  },
  'sends the results of calls together with the calls': {
    rule: 'a tool message answers exactly one call of the assistant message before it, which it names by `tool_call_id`',
    needs: ['sent'],
    async run(bench) {
      const reply = await bench.reply({ text: 'I look.', calls: CALLS });
      await askNext(
        bench,
        historyAfter(reply, ({ arguments: args }) => ({ content: `Result of ${JSON.stringify(args)}!` })),
      );
      expectSent(bench, String(QUESTION.content), 'I look.', ...reply.toolCalls.map(({ id }) => id));
      expectSent(
        bench,
        ...reply.toolCalls.map(({ arguments: args }) => `Result of ${JSON.stringify(args)}!`),
      );
    },
  },
  'sends each result with the id of its call': {
    rule: 'a tool message answers exactly one call of the assistant message before it, which it names by `tool_call_id`',
    needs: ['sent', 'call-ids'],
    async run(bench) {
      const reply = await bench.reply({ calls: CALLS });
      const ids = reply.toolCalls.map(({ id }) => id);
      const textOf = (id: string): string => `Result number ${ids.indexOf(id)}`;
      await askNext(
        bench,
        historyAfter(reply, ({ id }) => ({ content: textOf(id) })),
      );
      for (const id of ids) {
        const part = smallestWith(bench.lastSent, textOf(id), ids) ?? '';
        expectSame(
          `the ids of calls with ${textOf(id)}`,
          ids.filter((other) => part.includes(other)),
          [id],
        );
      }
    },
  },
  'sends the results of parallel calls in one message': {
    rule: 'if an API requires the results of all calls of a reply in one message, the provider merges their tool messages',
    needs: ['sent', 'parallel-calls', 'merged-results'],
    async run(bench) {
      const reply = await bench.reply({ calls: CALLS });
      const [first = '', second = ''] = reply.toolCalls.map((_, at) => `Result number ${at}`);
      const ids = reply.toolCalls.map(({ id }) => id);
      await askNext(
        bench,
        historyAfter(reply, ({ id }) => ({ content: ids.indexOf(id) === 0 ? first : second })),
      );
      expectSent(bench, String(QUESTION.content), first, second);
      const together = smallestWith(bench.lastSent, first, [second]);
      expectThat(
        together?.includes(String(QUESTION.content)) === false,
        'the results of two calls of one reply are sent in separate messages',
      );
    },
  },
  'marks results that are errors': {
    rule: '`isError` of a tool message states that its content describes an error: a provider sends it if its API has a field for it',
    needs: ['sent', 'result-errors'],
    async run(bench) {
      const reply = await bench.reply({ calls: CALLS.slice(0, 1) });
      const sent: unknown[] = [];
      for (const isError of [true, false]) {
        await askNext(
          bench,
          historyAfter(reply, () => ({ content: 'No such city', ...(isError && { isError }) })),
        );
        expectSent(bench, 'No such city');
        sent.push(bench.lastSent);
      }
      const [failed, succeeded] = sent.map(canonicalJson);
      expectThat(
        failed !== succeeded,
        'the model receives the same request for a result with and without `isError: true`',
      );
    },
  },
  'sends the arguments of earlier calls in the form of its API': {
    rule: '`arguments` of a call in the history is the text of the model, which may not be a JSON object: an API with text arguments receives that text or a JSON object as text, an API with objects receives an object',
    needs: ['sent'],
    async run(bench) {
      const [{ arguments: valid }] = CALLS;
      await askNext(bench, historyAfter(replyWith(valid)));
      const path = pathIn(bench.lastSent, (value) => {
        const read = typeof value === 'string' ? parsedJson(value) : value;
        return isRecord(read) && canonicalJson(read) === canonicalJson(parsedJson(valid));
      });
      if (path === undefined)
        throw new BrokenRule(`the model does not receive the arguments ${valid} of an earlier call`);
      const form = jsonType(valueAt(bench.lastSent, path));
      for (const text of ['{"city": "Oslo"', 'Oslo', '["Oslo"]', '']) {
        await askNext(bench, historyAfter(replyWith(text)));
        const sent = valueAt(bench.lastSent, path);
        const isReadable =
          typeof sent === 'string' ? sent === text || isRecord(parsedJson(sent)) : isRecord(sent);
        expectThat(
          isReadable && jsonType(sent) === form,
          `the arguments ${JSON.stringify(text)} of an earlier call are sent as ${JSON.stringify(sent)}, but valid arguments as ${form}`,
        );
      }
    },
  },
  'preserves the digits of long integers in earlier calls': {
    rule: '`arguments` of a call in the history may have integers that a number cannot represent: an API with objects receives their digits as text',
    needs: ['sent'],
    async run(bench) {
      await askNext(bench, historyAfter(replyWith(`{"city":"Oslo","days":${DIGITS}}`)));
      expectContained(bench, DIGITS, `the digits ${DIGITS} of an earlier call`);
    },
  },
  'sends system messages': {
    rule: '`messages` of LLMRequest may begin with system and developer messages, whose instructions the model receives',
    needs: ['sent'],
    async run(bench) {
      const instructions = [
        { role: 'system', content: 'Answer in Norwegian' },
        { role: 'developer', content: 'Use degrees Celsius' },
      ] as const;
      await bench.reply({ text: 'Done' }, { messages: [...instructions, QUESTION] });
      expectSent(bench, String(QUESTION.content));
      for (const { content } of instructions) expectSent(bench, content);
    },
  },
  'sends the images of user messages': {
    rule: "`content` of a user message may have parts: `{ type: 'image', data, mimeType }` is an image in base64",
    needs: ['sent', 'images'],
    run: (bench) => expectShown(bench, { type: 'image', data: PNG, mimeType: 'image/png' }),
  },
  'sends the files of user messages': {
    rule: "`content` of a user message may have parts: `{ type: 'file', data, mimeType, filename }` is a file in base64",
    needs: ['sent', 'files'],
    run: (bench) =>
      expectShown(bench, { type: 'file', data: PDF, mimeType: 'application/pdf', filename: 'map.pdf' }),
  },
  'sends the images of results': {
    rule: '`parts` of a tool message are what its result is beside text: a provider maps them to what its API takes',
    needs: ['sent', 'images'],
    run: (bench) => expectAttached(bench, { type: 'image', data: PNG, mimeType: 'image/png' }),
  },
  'sends the files of results': {
    rule: '`parts` of a tool message are what its result is beside text: a provider maps them to what its API takes',
    needs: ['sent', 'files'],
    run: (bench) =>
      expectAttached(bench, { type: 'file', data: PDF, mimeType: 'application/pdf', filename: 'map.pdf' }),
  },
  'sends the `providerItems` of a reply back, byte for byte': {
    rule: '`providerItems` are plain JSON under the single key `itemKey(model)`, on the message and on its calls, and are sent back byte for byte',
    needs: ['sent', 'provider-items'],
    async run(bench) {
      const [first, second] = SEALED;
      const reply = await bench.reply({
        text: 'Hm',
        reasoning: { text: 'Two cities', sealed: first },
        calls: CALLS,
      });
      const kept = [reply, ...reply.toolCalls]
        .map(({ providerItems }) => providerItems)
        .filter((items) => items !== undefined);
      expectThat(kept.length > 0, 'the reply has no `providerItems`, but the model sent data to store');
      for (const items of kept) {
        expectSame('the keys of `providerItems`', Object.keys(items), [bench.itemKey]);
        expectSame('`providerItems` after storing', plainJson(items), items);
      }
      const history = historyAfter(reply);
      const next = await bench.reply(
        {
          calls: CALLS.map((call) => ({ ...call, id: `${call.id}2` })),
          reasoning: { text: 'Again', sealed: second },
        },
        { messages: [QUESTION, ...history] },
      );
      expectSent(bench, first);
      await askNext(bench, [...history, ...historyAfter(next)]);
      expectSent(bench, first, second);
    },
  },
  'does not send the reasoning of messages': {
    rule: '`reasoning` of an assistant message is for users, and is never sent to a model as text',
    needs: ['sent'],
    async run(bench) {
      const message: Message = { role: 'assistant', content: 'Hello', reasoning: 'They greet me' };
      await askNext(bench, [message, { role: 'user', content: 'And now?' }]);
      expectSent(bench, 'Hello', 'And now?');
      expectThat(
        indexOfText(bench.lastSent, 'They greet me') < 0,
        'the model receives the `reasoning` of a message',
      );
    },
  },
  'does not change the request': {
    rule: 'LLMRequest is readonly: its messages and tools belong to the caller',
    async run(bench) {
      const reply = await bench.reply({ calls: CALLS });
      const messages = [QUESTION, ...historyAfter(reply)];
      const tools = structuredClone(SAMPLE_TOOLS);
      const before = canonicalJson({ messages, tools });
      await bench.reply({ text: 'Done' }, { messages, tools });
      expectThat(
        canonicalJson({ messages, tools }) === before,
        'it changes the messages or tools of the request',
      );
    },
  },
};

/** A reply as histories store it, serialized as by stores, with a result for each of its calls. */
function historyAfter(
  response: LLMResponse,
  answer: (call: ToolCall) => Pick<ToolMessage, 'content' | 'parts' | 'isError'> = ({ name }) => ({
    content: `Result of ${name}`,
  }),
): readonly Message[] {
  const { content, toolCalls, reasoning, providerItems } = response;
  const calls = toolCalls.map(({ id, name, arguments: args, providerItems: items }) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
    ...(items && { providerItems: items }),
  }));
  const message: AssistantMessage = {
    role: 'assistant',
    content,
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(reasoning && { reasoning }),
    ...(providerItems && { providerItems }),
  };
  const answers = toolCalls.map((call) => ({ role: 'tool', tool_call_id: call.id, ...answer(call) }));
  return JSON.parse(JSON.stringify([message, ...answers])) as readonly Message[];
}

/** Checks that the model receives different requests for different settings. */
async function expectTold(bench: Bench, settings: readonly Partial<LLMRequest>[]): Promise<void> {
  const seen = new Map<string, Partial<LLMRequest>>();
  for (const setting of settings) {
    await bench.reply({ text: 'Done' }, setting);
    const sent = canonicalJson(bench.lastSent);
    const other = seen.get(sent);
    expectThat(
      other === undefined,
      `the model receives the same request for ${JSON.stringify(setting)} and ${JSON.stringify(other)}`,
    );
    seen.set(sent, setting);
  }
}

const CHOICES: readonly ToolChoice[] = ['none', 'required', { tool: name }];
const FORMAT: ResponseFormat = {
  type: 'json',
  name: 'forecast',
  schema: {
    type: 'object',
    properties: { degrees_in_oslo: { type: 'number' } },
    required: ['degrees_in_oslo'],
    additionalProperties: false,
  },
};

/** Cases about the settings of a request. */
export const SETTING_CASES: CaseDrafts = {
  'sends the options of the request': {
    rule: '`options` of LLMRequest are the `llmOptions` of the loop, passed on unchanged',
    needs: ['sent', 'options'],
    async run(bench) {
      const { options } = bench;
      for (const omitted of Object.keys(options)) {
        const others = Object.entries(options).filter(([key]) => key !== omitted);
        await expectTold(bench, [{ options }, { options: Object.fromEntries(others) }]);
      }
    },
  },
  'limits the tokens of the reply': {
    rule: '`maxOutputTokens` of LLMRequest is the largest reply, in tokens, that the budget can pay for',
    needs: ['sent', 'output-limit'],
    run: (bench) => expectTold(bench, [{ maxOutputTokens: 1_025 }, { maxOutputTokens: 2_049 }]),
  },
  'sends which tools the model may call': {
    rule: '`toolChoice` of LLMRequest states whether the model must call a tool, and which',
    needs: ['sent', 'tool-choice'],
    run: (bench) => expectTold(bench, [{}, ...CHOICES.map((toolChoice) => ({ toolChoice }))]),
  },
  'sends the list of tools from which the model may choose': {
    rule: '`toolChoice: { tools }` of LLMRequest lists the tools that the model may call',
    needs: ['sent', 'tool-choice'],
    run: (bench) =>
      expectTold(bench, [
        {},
        { toolChoice: { tools: [name] } },
        { toolChoice: { tools: [name], mode: 'required' } },
      ]),
  },
  'sends whether a reply may have several calls': {
    rule: '`parallelToolCalls` of LLMRequest states whether a reply may have several calls',
    needs: ['sent', 'parallel-choice'],
    run: (bench) => expectTold(bench, [{ parallelToolCalls: true }, { parallelToolCalls: false }]),
  },
  'sends the response format': {
    rule: '`responseFormat` of LLMRequest is any text, any JSON, or JSON of a schema',
    needs: ['sent', 'json-format'],
    run: (bench) => expectTold(bench, [{}, { responseFormat: { type: 'json' } }, { responseFormat: FORMAT }]),
  },
  'sends the schema of the reply': {
    rule: '`responseFormat` of LLMRequest is any text, any JSON, or JSON of a schema',
    needs: ['sent', 'response-format'],
    async run(bench) {
      await expectTold(bench, [{}, { responseFormat: FORMAT }]);
      expectContained(bench, 'degrees_in_oslo', 'the schema of its reply');
    },
  },
};

/** The position of a text in what a model received, counted in its keys and strings; -1 if it is absent. */
function indexOfText(sent: unknown, text: string): number {
  return textsIn(sent).findIndex((candidate) => candidate.includes(text));
}

/**
 * The smallest part of what a model received that contains a text and one of the others, as text; `undefined` if no
 * part contains them.
 */
function smallestWith(sent: unknown, text: string, others: readonly string[]): string | undefined {
  const texts = textsIn(sent);
  const has = (wanted: string): boolean => texts.some((candidate) => candidate.includes(wanted));
  if (typeof sent !== 'object' || sent === null || !has(text) || !others.some(has)) return undefined;
  for (const inner of Object.values(sent)) {
    const found = smallestWith(inner, text, others);
    if (found !== undefined) return found;
  }
  return JSON.stringify(sent);
}

/** The keys that lead to the first value that fits; `undefined` if no value fits. */
function pathIn(sent: unknown, fits: (value: unknown) => boolean): readonly string[] | undefined {
  if (fits(sent)) return [];
  if (typeof sent !== 'object' || sent === null) return undefined;
  for (const [key, inner] of Object.entries(sent)) {
    const path = pathIn(inner, fits);
    if (path !== undefined) return [key, ...path];
  }
  return undefined;
}

function valueAt(sent: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (value as Readonly<Record<string, unknown>> | undefined)?.[key],
    sent,
  );
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return isRecord(value) ? Object.entries(value).flatMap(([key, inner]) => [key, ...textsIn(inner)]) : [];
}
