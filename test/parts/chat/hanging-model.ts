import type { LLMProvider } from 'toolwright';

/** A model that begins a reply, and then waits until it is aborted. `begun` resolves with its first text. */
export function hangingModel(): { readonly provider: LLMProvider; readonly begun: Promise<void> } {
  const begun = Promise.withResolvers<void>();
  const provider: LLMProvider = {
    chat: () => Promise.reject(new Error('only streams')),
    async *stream({ signal }) {
      yield { type: 'text-delta', text: 'Let me' };
      begun.resolve();
      await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    },
  };
  return { provider, begun: begun.promise };
}
