import type { LLMRequest, ResponseFormat, ToolChoice } from '../../../core/contract/llm-provider.js';
import { canonicalJson } from '../../../core/kernel/json.js';
import { type Bench, type CaseDraft, LOOK_UP } from './bench.js';
import { expectThat } from './expectations.js';
import { indexOfText } from './sent-values.js';

const { name } = LOOK_UP.function;

/** Checks that the model receives different requests for different settings. */
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

/** Cases about the settings of a request. */
export const SETTING_CASES: readonly CaseDraft[] = [
  {
    title: 'sends the options of the request',
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
  {
    title: 'limits the tokens of the reply',
    rule: '`maxOutputTokens` of LLMRequest is the most tokens of the reply that the budget can pay for',
    needs: ['sent', 'output-limit'],
    run: (bench) => expectTold(bench, [{ maxOutputTokens: 1_025 }, { maxOutputTokens: 2_049 }]),
  },
  {
    title: 'sends which tools the model may call',
    rule: '`toolChoice` of LLMRequest says whether the model must call a tool, and which',
    needs: ['sent', 'tool-choice'],
    run: (bench) => expectTold(bench, [{}, ...CHOICES.map((toolChoice) => ({ toolChoice }))]),
  },
  {
    title: 'sends the list of tools from which the model may choose',
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
    title: 'sends whether a reply may have several calls',
    rule: '`parallelToolCalls` of LLMRequest says whether a reply may have several calls',
    needs: ['sent', 'parallel-choice'],
    run: (bench) => expectTold(bench, [{ parallelToolCalls: true }, { parallelToolCalls: false }]),
  },
  {
    title: 'sends the response format',
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
      const place = indexOfText(bench.lastSent, 'degrees_in_oslo');
      expectThat(place >= 0, 'the model is not sent the schema of its reply');
    },
  },
];
