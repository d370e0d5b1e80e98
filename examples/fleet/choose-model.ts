import type { LLMProvider } from 'toolwright';
import { OfflineProvider } from 'toolwright/offline';

/** A real model if the environment names a key or a server, otherwise the offline provider. */
export async function chooseModel(
  environment: NodeJS.ProcessEnv,
): Promise<{ readonly provider: LLMProvider; readonly model: string }> {
  const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL, OPENAI_MODEL } = environment;
  if (!apiKey && !baseURL) return { provider: new OfflineProvider(), model: 'offline' };
  // Imported on demand: the offline provider does not need the `openai` package.
  const { OpenAIProvider } = await import('toolwright/openai');
  return { provider: new OpenAIProvider(), model: OPENAI_MODEL ?? 'gpt-5-mini' };
}
