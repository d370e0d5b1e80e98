import type { LLMProvider } from 'toolwright';

export interface ChosenModel {
  readonly provider: LLMProvider;
  readonly model: string;
}

/** With OPENAI_API_KEY a real model (after `npm install openai`), otherwise `OfflineProvider`, which only matches words. */
export async function chooseModel(): Promise<ChosenModel> {
  if (process.env.OPENAI_API_KEY) {
    const { OpenAIProvider } = await import('toolwright/openai');
    return { provider: new OpenAIProvider(), model: process.env.OPENAI_MODEL ?? 'gpt-5-mini' };
  }
  const { OfflineProvider } = await import('toolwright/offline');
  return { provider: new OfflineProvider(), model: 'offline' };
}
