import type OpenAI from 'openai';

/** The type of OpenAI’s own client for the body of a Chat Completions request. */
export type ChatBody =
  | OpenAI.ChatCompletionCreateParamsNonStreaming
  | OpenAI.ChatCompletionCreateParamsStreaming;

/** The type of the client for the body of a Responses request. */
export type ResponsesBody =
  | OpenAI.Responses.ResponseCreateParamsNonStreaming
  | OpenAI.Responses.ResponseCreateParamsStreaming;
