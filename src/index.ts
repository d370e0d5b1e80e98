import './metadata/extensible-reflect.js';
import 'reflect-metadata';

export { Args } from '../decorators/args.js';
export { Context } from '../decorators/context.js';
export { describeClass } from '../decorators/describe-class.js';
export { Param } from '../decorators/param.js';
export { Tool } from '../decorators/tool.js';
export { Toolset } from '../decorators/toolset.js';
export type {
  AgentToolResult,
  AgentToolUpdateCallback,
  ToolExecutionContext,
} from './contract/agent-tool.js';
export type { ArgsOptions } from './contract/args-options.js';
export type { ArgumentFault } from './contract/argument-fault.js';
export type { BackgroundTask, TaskEvent, TaskListener } from './contract/background-task.js';
export type { CallRecord, CallStatus } from './contract/call-record.js';
export type { CallScope, LogListener, UpdateListener } from './contract/call-scope.js';
export type {
  ClassDescription,
  DescribedParameter,
  DescribedProperty,
  DescribedSchema,
  DescribedTool,
} from './contract/class-description.js';
export type { ClassType } from './contract/class-type.js';
export type { Content, ContentPart, FilePart, ImagePart, TextPart } from './contract/content-part.js';
export type { InjectionToken, InstanceResolver, ScopedResolver } from './contract/instance-resolver.js';
export { Integer } from './contract/integer.js';
export type { JsonObject, JsonSchema } from './contract/json-schema.js';
export type {
  FinishReason,
  LLMProvider,
  LLMRequest,
  LLMResponse,
  LLMStreamPart,
  ToolCall,
  Usage,
} from './contract/llm-provider.js';
export type { LogFields, Logger, LogLevel } from './contract/logger.js';
export type {
  AssistantMessage,
  Message,
  MessageToolCall,
  SystemMessage,
  ToolMessage,
  UserMessage,
} from './contract/message.js';
export type {
  EnumSource,
  ParamOptions,
  SchemaConstraints,
  TypeReference,
  TypeToken,
} from './contract/param-options.js';
export { RetryToolCall } from './contract/retry-tool-call.js';
export type { RunState } from './contract/run-state.js';
export type { ClaimOutcome, RunClaim, RunLease, RunStore } from './contract/run-store.js';
export type { SchemaSource, StandardSchema, ValueOf } from './contract/standard-schema.js';
export type {
  Answer,
  ApprovalAnswer,
  CallJournal,
  ClientAnswer,
  GivenAnswer,
  PendingCall,
  PendingKind,
  QuestionAnswer,
  Suspension,
  Wait,
} from './contract/suspension.js';
export type { AsyncCallback, AsyncTool, ContextualTool } from './contract/tool.js';
export {
  type ProgressUpdate,
  type Question,
  ToolContext,
  type ToolContextData,
} from './contract/tool-context.js';
export type { ToolDefinition } from './contract/tool-definition.js';
export type { Approval, ToolAnnotations, ToolOptions } from './contract/tool-options.js';
export type { PolicyDecision, PolicyRequest, ToolPolicy } from './contract/tool-policy.js';
export {
  asyncResult,
  errorResult,
  type SerializedToolResult,
  silentResult,
  ToolResult,
  type ToolResultFields,
  toolResult,
  userResult,
} from './contract/tool-result.js';
export type { ToolSchema } from './contract/tool-schema.js';
export type { ToolsetOptions, ToolsetScope, ToolsetTitle } from './contract/toolset-options.js';
export { Conversation } from './conversation/conversation.js';
export type {
  AnswerOptions,
  ConversationConfig,
  IdleOptions,
  TurnOptions,
} from './conversation/conversation-config.js';
export type { ConversationEvent, Turn, TurnOrigin } from './conversation/conversation-event.js';
export type { ConversationSnapshot } from './conversation/conversation-snapshot.js';
export type { ConversationListener } from './conversation/event-hub.js';
export { parseToolRequest, type ToolRequest } from './detection/parse-tool-request.js';
export { type TextToolsOptions, withTextTools } from './detection/text-tools/with-text-tools.js';
export { type ParsedText, ToolCallParser, type ToolCallParserOptions } from './detection/tool-call-parser.js';
export { type AgentTool, agentTool } from './discovery/agent-tool.js';
export { type ArgumentsOf, type DefineToolOptions, defineTool } from './discovery/define-tool.js';
export { type DiscoverOptions, discoverTools } from './discovery/discover-tools.js';
export { type AuthorFault, ToolDeclarationError } from './errors/author-fault.js';
export { ERROR_TABLE, type ErrorEntry, type ErrorName } from './errors/error-table.js';
export { type InvalidOption, InvalidOptionsError } from './errors/invalid-options.js';
export { ToolwrightError } from './errors/toolwright-error.js';
export { type AnsweredWait, answerWait, type WaitAnswer, type WaitInCall } from './invocation/answer-wait.js';
export type {
  AnsweredInvocation,
  CallRequest,
  DescribeError,
  Invocation,
  SuspendedInvocation,
} from './invocation/invocation.js';
export { TaskQueue, type TaskQueueOptions } from './invocation/task-queue.js';
export {
  type BareTool,
  type Completion,
  type CompletionBlock,
  type CompletionModel,
  type CompletionRequest,
  complete,
} from './loop/complete.js';
export type { CallDetector, DetectedCalls, Detector } from './loop/detect-calls.js';
export type { ToolLoopConfig } from './loop/loop-config.js';
export type { LoopEvent } from './loop/loop-event.js';
export type { LoopGuardOptions } from './loop/loop-guard.js';
export type { LoopStatus, ToolLoopResult } from './loop/loop-result.js';
export type { ResumeConfig, ResumeOptions } from './loop/resume-options.js';
export { resumeStoredRun, type StoredRun } from './loop/resume-stored-run.js';
export { resumeToolLoop } from './loop/resume-tool-loop.js';
export { runToolLoop } from './loop/run-tool-loop.js';
export { streamResumedToolLoop } from './loop/stream-resumed-tool-loop.js';
export type { ToolLoopStream } from './loop/stream-run.js';
export { streamToolLoop } from './loop/stream-tool-loop.js';
export type { NameFilter } from './registry/name-filter.js';
export {
  type FunctionParameter,
  type FunctionParameterType,
  registerFunction,
} from './registry/register-function.js';
export { type ToolCallResult, ToolRegistry } from './registry/tool-registry.js';
export type { ToolRegistryOptions } from './registry/tool-registry-options.js';
export type { RegisteredTool } from './registry/tool-table.js';
export { toolToSchema } from './registry/tool-to-schema.js';
