import type { LLMRequest, ResponseFormat, ToolChoice } from '../../contract/llm-provider.js';
import { canonicalJson } from '../../kernel/json.js';
import { type Bench, LOOK_UP } from './bench.js';
import type { CaseDraft } from './conformance-case.js';
import { expectThat, placeIn } from './expectations.js';

const { name } = LOOK_UP.function;

/** What the model is sent with each of some settings; no two of them may be the same. */
async function expectTold(bench: Bench, settings: readonly Partial<LLMRequest>[]): Promise<void> {
  const seen = new Map<string, Partial<LLMRequest>>();
  for (const setting of settings) {
    await bench.reply({ text: 'Done' }, setting);
    const sent = canonicalJson(bench.lastSent);
    const other = seen.get(sent);
    expectThat(
      other === undefined,
      `the model is sent the same with ${JSON.stringify(setting)} as with ${JSON.stringify(other)}`,
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

/** What a request says of the reply that is wanted. */
export const SETTING_CASES: readonly CaseDraft[] = [
  {
    title: 'tells which tools the model may call',
    rule: '`toolChoice` of LLMRequest says whether the model must call a tool, and which',
    needs: ['sent', 'tool-choice'],
    run: (bench) => expectTold(bench, [{}, ...CHOICES.map((toolChoice) => ({ toolChoice }))]),
  },
  {
    title: 'tells of which tools the model may call one',
    rule: '`toolChoice: { tools }` of LLMRequest says which of the offered tools the model may call',
    needs: ['sent', 'tool-choice'],
    run: (bench) =>
      expectTold(bench, [
        {},
        { toolChoice: { tools: [name] } },
        { toolChoice: { tools: [name], mode: 'required' } },
      ]),
  },
  {
    title: 'tells whether a reply may have several calls',
    rule: '`parallelToolCalls` of LLMRequest says whether a reply may have several calls',
    needs: ['sent', 'parallel-choice'],
    run: (bench) => expectTold(bench, [{ parallelToolCalls: true }, { parallelToolCalls: false }]),
  },
  {
    title: 'tells that the reply is to be JSON',
    rule: '`responseFormat` of LLMRequest is any text, any JSON, or JSON of a schema',
    needs: ['sent', 'json-format'],
    run: (bench) => expectTold(bench, [{}, { responseFormat: { type: 'json' } }, { responseFormat: FORMAT }]),
  },
  {
    title: 'tells the schema of the reply',
    rule: '`responseFormat` of LLMRequest is any text, any JSON, or JSON of a schema',
    needs: ['sent', 'response-format'],
    async run(bench) {
      await expectTold(bench, [{}, { responseFormat: FORMAT }]);
      const place = placeIn(bench.lastSent, 'degrees_in_oslo');
      expectThat(place >= 0, 'the model is not sent the schema of its reply');
    },
  },
];
