import type { Anthropic } from '@anthropic-ai/sdk';
import type {
  Content,
  GenerateContentResponse,
  GenerationConfig,
  SafetySetting,
  Tool,
  ToolConfig,
} from '@google/genai';

/** What Anthropic's own client takes as the body of a request, and gives as reply and as event of a stream. */
export type MessagesBody = Anthropic.MessageCreateParams & OlderModelsBody;
export type MessagesReply = Anthropic.Message;
export type MessagesEvent = Anthropic.RawMessageStreamEvent;

/** The client no longer declares it, as newer models refuse it; older models still take it. */
interface OlderModelsBody {
  readonly temperature?: number;
}

/** The body of a request to Gemini, whose parts are types of Google's own client. */
export interface GenerateBody {
  readonly contents: Content[];
  readonly systemInstruction?: Content;
  readonly tools?: Tool[];
  readonly toolConfig?: ToolConfig;
  readonly safetySettings?: SafetySetting[];
  readonly generationConfig?: GenerationConfig;
  readonly cachedContent?: string;
}

/** A reply of Gemini, or an event of its stream, without what that client computes. */
export type GenerateReply = Pick<
  GenerateContentResponse,
  'candidates' | 'usageMetadata' | 'promptFeedback' | 'modelVersion' | 'responseId' | 'createTime'
>;
