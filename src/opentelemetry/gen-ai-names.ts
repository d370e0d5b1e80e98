/**
 * The names of the GenAI and MCP conventions, written out: the constants of `@opentelemetry/semantic-conventions` are
 * those of another repository by now (open-telemetry/semantic-conventions-genai, in development).
 */
export const GEN_AI = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  conversation: 'gen_ai.conversation.id',
  agent: 'gen_ai.agent.name',
  outputType: 'gen_ai.output.type',
  requestModel: 'gen_ai.request.model',
  stream: 'gen_ai.request.stream',
  maxTokens: 'gen_ai.request.max_tokens',
  temperature: 'gen_ai.request.temperature',
  topP: 'gen_ai.request.top_p',
  topK: 'gen_ai.request.top_k',
  seed: 'gen_ai.request.seed',
  stopSequences: 'gen_ai.request.stop_sequences',
  frequencyPenalty: 'gen_ai.request.frequency_penalty',
  presencePenalty: 'gen_ai.request.presence_penalty',
  choices: 'gen_ai.request.choice.count',
  reasoningLevel: 'gen_ai.request.reasoning.level',
  previousResponse: 'gen_ai.request.previous_response.id',
  finishReasons: 'gen_ai.response.finish_reasons',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  firstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheRead: 'gen_ai.usage.cache_read.input_tokens',
  cacheWrite: 'gen_ai.usage.cache_write.input_tokens',
  reasoning: 'gen_ai.usage.reasoning.output_tokens',
  modality: 'gen_ai.token.modality',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  toolDefinitions: 'gen_ai.tool.definitions',
  tool: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  toolDescription: 'gen_ai.tool.description',
  callId: 'gen_ai.tool.call.id',
  callArguments: 'gen_ai.tool.call.arguments',
  callResult: 'gen_ai.tool.call.result',
} as const;

/** Events of spans; contents stand in them only where they are asked for. */
export const EXCEPTION = {
  request: 'gen_ai.client.operation.exception',
  call: 'gen_ai.execute_tool.exception',
  type: 'exception.type',
  message: 'exception.message',
} as const;

export const ERROR_TYPE = 'error.type';
export const SERVER_ADDRESS = 'server.address';
export const SERVER_PORT = 'server.port';

/** What no convention has a name for. */
export const OWN = {
  runId: 'toolwright.run.id',
  runStatus: 'toolwright.run.status',
  runWaits: 'toolwright.run.waits_for',
  /** Seconds between the suspension of a run and this. */
  runWaited: 'toolwright.run.waited',
  /** By the prices of its budget. */
  runCost: 'toolwright.run.cost',
  requestCost: 'toolwright.request.cost',
  callCost: 'toolwright.call.cost',
  callStatus: 'toolwright.call.status',
  attempt: 'toolwright.call.attempt',
  repairs: 'toolwright.call.repairs',
  removed: 'toolwright.call.removed_arguments',
  waits: 'toolwright.call.waits_for',
  answered: 'toolwright.call.waited_for',
  taskId: 'toolwright.task.id',
  /** What a link is to. */
  link: 'toolwright.link',
  retry: 'toolwright.request.retry',
  retryDelay: 'toolwright.request.retry.delay',
  replay: 'toolwright.call.replay',
  replayOf: 'toolwright.call.replay.of',
  replayKey: 'toolwright.call.replay.key',
  settled: 'toolwright.run.settled_before',
  settledCalls: 'toolwright.run.settled_before.call_ids',
} as const;
