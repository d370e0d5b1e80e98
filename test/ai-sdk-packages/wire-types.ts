import type { Anthropic } from '@anthropic-ai/sdk';
import type {
  Content,
  GenerateContentResponse,
  GenerationConfig,
  SafetySetting,
  Tool,
  ToolConfig,
} from '@google/genai';

/** The types of requests, replies and stream events in Anthropic's own client. */
export type MessagesBody = Anthropic.MessageCreateParams & OlderModelsBody;
export type MessagesReply = Anthropic.Message;
export type MessagesEvent = Anthropic.RawMessageStreamEvent;

/** The client no longer declares `temperature`, because newer models reject it; older models accept it. */
interface OlderModelsBody {
  readonly temperature?: number;
}

/** The body of a request to Gemini, composed of types of Google's own client. */
export interface GenerateBody {
  readonly contents: Content[];
  readonly systemInstruction?: Content;
  readonly tools?: Tool[];
  readonly toolConfig?: ToolConfig;
  readonly safetySettings?: SafetySetting[];
  readonly generationConfig?: GenerationConfig;
  readonly cachedContent?: string;
}

/** A reply of Gemini or an event of its stream, without the properties that the client computes. */
export type GenerateReply = Pick<
  GenerateContentResponse,
  'candidates' | 'usageMetadata' | 'promptFeedback' | 'modelVersion' | 'responseId' | 'createTime'
>;
