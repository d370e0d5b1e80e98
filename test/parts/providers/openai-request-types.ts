import type OpenAI from 'openai';

/** What OpenAI's own client takes as the body of a request to Chat Completions. */
export type ChatBody =
  | OpenAI.ChatCompletionCreateParamsNonStreaming
  | OpenAI.ChatCompletionCreateParamsStreaming;

/** What it takes as the body of a request to Responses. */
export type ResponsesBody =
  | OpenAI.Responses.ResponseCreateParamsNonStreaming
  | OpenAI.Responses.ResponseCreateParamsStreaming;
