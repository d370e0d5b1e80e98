import type { LLMProvider } from 'toolwright';
import { rehearsedModel } from './rehearsed-model.js';

/** A real model if the environment names a key or a server, otherwise a scripted one for the sample. */
export async function chooseModel(
  environment: NodeJS.ProcessEnv,
): Promise<{ readonly provider: LLMProvider; readonly model: string; readonly isRehearsed: boolean }> {
  const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL, OPENAI_MODEL } = environment;
  if (!apiKey && !baseURL) return { provider: rehearsedModel(), model: 'rehearsed', isRehearsed: true };
  // Imported on demand: the scripted model does not need the `openai` package.
  const { OpenAIProvider } = await import('toolwright/openai');
  return { provider: new OpenAIProvider(), model: OPENAI_MODEL ?? 'gpt-5-mini', isRehearsed: false };
}
