import {
  type CallScope,
  type Message,
  runToolLoop,
  type ToolDefinition,
  type ToolLoopConfig,
  type ToolLoopResult,
} from 'toolwright';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';

/** The messages that every run of these tests starts with. */
export const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }];

/** A run and its provider. */
export interface ScriptedRun {
  readonly run: ToolLoopResult;
  readonly provider: ScriptedProvider;
}

/** Runs the loop against a script. */
export async function runScript(
  steps: readonly ScriptedStep[],
  config: Omit<ToolLoopConfig, 'provider' | 'model'> = {},
  scope: CallScope = {},
): Promise<ScriptedRun> {
  const provider = new ScriptedProvider(steps);
  return { run: await runToolLoop({ provider, model: 'm', ...config }, hello, scope), provider };
}

/** A tool that takes `{ n: integer }` and returns the number. */
export function numberTool(name: string, more: Partial<ToolDefinition> = {}): ToolDefinition {
  return {
    name,
    description: name,
    parameters: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
    execute: ({ n }: { n: number }) => n,
    ...more,
  };
}

/** The contents of the tool messages of a run. */
export function answers({ messages }: ToolLoopResult): readonly string[] {
  return messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []));
}
