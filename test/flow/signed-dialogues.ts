import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { defineTool, type ToolLoopConfig } from 'toolwright';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { OpenAIProvider } from 'toolwright/openai';
import { anthropicMessage } from '../parts/providers/anthropic-bodies.js';
import { completion } from '../parts/providers/loopback-server.js';
import { functionCall, message, reasoning, responseOf } from '../parts/providers/responses-bodies.js';

/** A model whose first reply has a field that the second request must contain. */
export interface SignedDialogue {
  readonly first: unknown;
  readonly last: unknown;
  /** Texts that the body of the second request must contain, byte for byte. */
  readonly kept: readonly string[];
  ask(baseURL: string): Pick<ToolLoopConfig, 'provider' | 'model' | 'llmOptions'>;
}

// Characters that a careless copy would change.
const SIGNATURE = 'EqQBCkYIBRgCKkDx+/9a0==\u2028"q"\\';
const CALL = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"at":1}' } };

function ofChat(model: string, fields: Record<string, unknown>, kept: readonly string[]): SignedDialogue {
  return {
    first: completion({ content: null, tool_calls: [CALL], ...fields }, { finish_reason: 'tool_calls' }),
    last: completion({ content: 'Done.' }),
    kept,
    ask: (baseURL) => ({ model, provider: new OpenAIProvider({ baseURL, apiKey: 'k', maxRetries: 0 }) }),
  };
}

const claude = (content: readonly Record<string, unknown>[], stop: string) =>
  anthropicMessage(content, { stop, usage: { input_tokens: 2, output_tokens: 4 } });

const gemini = (parts: readonly unknown[]) => ({
  candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1, totalTokenCount: 6 },
});

/** By the name of the field. */
export const SIGNED_DIALOGUES: Readonly<Record<string, SignedDialogue>> = {
  'reasoning_content of Chat Completions': ofChat('deepseek-v4-pro', { reasoning_content: 'Let me see.' }, [
    '"reasoning_content":"Let me see."',
  ]),
  'reasoning_details of Chat Completions': ofChat(
    'anthropic/claude-sonnet-4.5',
    { reasoning_details: [{ type: 'reasoning.text', text: 'Let me see.', signature: SIGNATURE, index: 0 }] },
    [`"signature":${JSON.stringify(SIGNATURE)}`],
  ),
  'extra_content.google.thought_signature of Chat Completions': ofChat(
    'gemini-3-pro',
    { tool_calls: [{ ...CALL, extra_content: { google: { thought_signature: SIGNATURE } } }] },
    [`"extra_content":{"google":{"thought_signature":${JSON.stringify(SIGNATURE)}}}`],
  ),
  'encrypted_content of Responses': {
    first: responseOf([reasoning('Let me see.'), functionCall('c1', '{"at":1}')]),
    last: responseOf([message('Done.')]),
    kept: ['"encrypted_content":"gAAAAB+/="'],
    ask: (baseURL) => ({
      model: 'gpt-5.2',
      provider: new OpenAIProvider({ api: 'responses', baseURL, apiKey: 'k', maxRetries: 0 }),
    }),
  },
  'thinking and signature of Anthropic, through the AI SDK': {
    first: claude(
      [
        { type: 'thinking', thinking: 'Let me see.', signature: SIGNATURE },
        { type: 'tool_use', id: 'c1', name: 'look', input: { at: 1 } },
      ],
      'tool_use',
    ),
    last: claude([{ type: 'text', text: 'Done.' }], 'end_turn'),
    kept: ['"thinking":"Let me see."', `"signature":${JSON.stringify(SIGNATURE)}`],
    ask: (baseURL) => ({
      model: 'claude-sonnet-4-5',
      provider: fromAiSdk(createAnthropic({ baseURL, apiKey: 'k' }), { maxRetries: 0 }),
      llmOptions: { providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } } },
    }),
  },
  'thoughtSignature of Gemini, through the AI SDK': {
    first: gemini([
      { functionCall: { id: 'c1', name: 'look', args: { at: 1 } }, thoughtSignature: SIGNATURE },
    ]),
    last: gemini([{ text: 'Done.' }]),
    kept: [`"thoughtSignature":${JSON.stringify(SIGNATURE)}`],
    ask: (baseURL) => ({
      model: 'gemini-3-pro',
      provider: fromAiSdk(createGoogle({ baseURL, apiKey: 'k' }), { maxRetries: 0 }),
    }),
  },
};

/** The tool that waits for an approval between the two requests. */
export const look = defineTool({
  name: 'look',
  description: 'Looks',
  parameters: { type: 'object', properties: { at: { type: 'integer' } } },
  approval: true,
  execute: ({ at }) => `seen at ${at}`,
});
