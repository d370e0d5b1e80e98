import type { LLMProvider, LLMRequest, LLMResponse, LLMStreamPart } from 'toolwright';

/** What a provider does wrong. */
export interface Spoiler {
  readonly request?: (request: LLMRequest) => LLMRequest;
  readonly response?: (response: LLMResponse) => LLMResponse;
  readonly part?: (part: LLMStreamPart) => readonly LLMStreamPart[];
  /** Gives what is thrown instead; nothing where the failure is kept quiet. */
  readonly failure?: (error: unknown) => unknown;
}

/** A provider that does something wrong, and all the rest right. */
export function spoiled(
  provider: LLMProvider & Required<Pick<LLMProvider, 'stream'>>,
  spoiler: Spoiler,
): LLMProvider {
  const {
    request: asked = (request) => request,
    response: given = (response) => response,
    part: told = (part) => [part],
    failure: thrown = (error) => error,
  } = spoiler;
  return {
    ...(provider.itemKey && { itemKey: provider.itemKey.bind(provider) }),
    async chat(request) {
      try {
        return given(await provider.chat(asked(request)));
      } catch (error) {
        const failure = thrown(error);
        if (failure === undefined) return { content: '', toolCalls: [], finishReason: 'stop' };
        throw failure;
      }
    },
    async *stream(request) {
      try {
        for await (const part of provider.stream(asked(request))) {
          if (part.type === 'response') yield { type: 'response', response: given(part.response) };
          else yield* told(part);
        }
      } catch (error) {
        const failure = thrown(error);
        if (failure !== undefined) throw failure;
      }
    },
  };
}
