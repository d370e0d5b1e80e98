import type { LLMProvider, LLMRequest, LLMResponse, LLMStreamPart } from 'toolwright';

/** The changes that make a provider wrong. */
export interface Spoiler {
  readonly request?: (request: LLMRequest) => LLMRequest;
  readonly response?: (response: LLMResponse) => LLMResponse;
  readonly part?: (part: LLMStreamPart) => readonly LLMStreamPart[];
  /** Replaces an error; `undefined` suppresses it. */
  readonly failure?: (error: unknown) => unknown;
}

/** A provider that is wrong in one way and otherwise correct. */
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
