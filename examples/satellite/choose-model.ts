import type { LLMProvider, ToolSchema } from 'toolwright';
import { OfflineProvider } from 'toolwright/offline';
import { speakProtocol } from './speak-protocol.js';
import { UserFault } from './user-fault.js';

/** A model and its provider. */
export interface ChosenModel {
  readonly provider: LLMProvider;
  readonly model: string;
}

/** A real model if the environment names a key or a server, otherwise the offline provider. */
export async function chooseModel(
  environment: NodeJS.ProcessEnv,
  tools: readonly ToolSchema[],
): Promise<ChosenModel> {
  const apiKey = environment.OPENAI_API_KEY?.trim() || undefined;
  const baseURL = environment.OPENAI_BASE_URL?.trim() || undefined;
  if (apiKey === undefined && baseURL === undefined)
    return { provider: speakProtocol(new OfflineProvider(), tools), model: 'offline' };
  if (baseURL !== undefined && !/^https?:\/\/./i.test(baseURL))
    throw new UserFault(`OPENAI_BASE_URL is not an http address: ${baseURL}`);
  // Imported on demand: the offline provider does not need the `openai` package.
  const { OpenAIProvider } = await import('toolwright/openai');
  return {
    provider: new OpenAIProvider({ apiKey, baseURL }),
    model: environment.OPENAI_MODEL?.trim() || 'gpt-5-mini',
  };
}
