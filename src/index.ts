import './core/metadata/extensible-reflect.js';
import 'reflect-metadata/lite';

import { Completion as CompletionDecorator } from '../decorators/completion.js';
import type { Completion as ModelCompletion } from './run/loop/complete.js';

export { Args } from '../decorators/args.js';
export { Context } from '../decorators/context.js';
export { describeClass } from '../decorators/describe-class.js';
export { Param } from '../decorators/param.js';
export { Prompt } from '../decorators/prompt.js';
export { Public } from '../decorators/public.js';
export { Resource } from '../decorators/resource.js';
export { Tool } from '../decorators/tool.js';
export { Toolset } from '../decorators/toolset.js';
export type {
  AskableLimits,
  Budget,
  BudgetGrant,
  BudgetLimits,
  KeyedBudget,
  ModelPrice,
  PriceTable,
  Spending,
  WhenSpent,
} from './core/contract/budget.js';
export type {
  BudgetAccount,
  BudgetAmounts,
  BudgetBalance,
  BudgetLedger,
  BudgetPart,
  BudgetReservation,
  ReservationOutcome,
  StoreWithBudgets,
} from './core/contract/budget-ledger.js';
export type {
  Answer,
  ApprovalAnswer,
  CallJournal,
  CallRecord,
  CallScope,
  CallStatus,
  ClientAnswer,
  EditedCall,
  EnclosingCall,
  GivenAnswer,
  HookMoment,
  HookNote,
  LogListener,
  MayRemember,
  OutcomeAnswer,
  PendingCall,
  PendingKind,
  PolicyDecision,
  PolicyRemember,
  PolicyRequest,
  QuestionAnswer,
  StandingYes,
  Suspension,
  ToolPolicy,
  UpdateListener,
  Wait,
} from './core/contract/call.js';
export type {
  ConversationCommit,
  ConversationHold,
  ConversationLease,
  ConversationLog,
  ConversationNews,
  EnteredEntry,
  EventQuery,
  HoldOutcome,
  HoldRenewal,
  InboxContent,
  InboxEntry,
  KeptConversation,
  LoggedEvent,
  NewInboxEntry,
  OpenTurn,
} from './core/contract/conversation-log.js';
export {
  type Approval,
  type ApprovalDecision,
  type ApprovalNeed,
  type ApprovalOptions,
  type Approver,
  type ApproverRequest,
  type ArgsOptions,
  type BackgroundOptions,
  type ClassDescription,
  type ClassType,
  type DescribedParameter,
  type DescribedProperty,
  type DescribedSchema,
  type DescribedTool,
  type EnumSource,
  Integer,
  type McpApp,
  type ParamOptions,
  type RememberOptions,
  type ResultCaching,
  type SchemaConstraints,
  type ToolAnnotations,
  type ToolOptions,
  type ToolsetOptions,
  type ToolsetScope,
  type ToolsetTitle,
  type TypeReference,
  type TypeToken,
} from './core/contract/declaration.js';
export type {
  AfterCall,
  AfterResponse,
  BeforeCall,
  BeforeRequest,
  BeforeRun,
  EndedCall,
  HookedCall,
  HookedFailure,
  HookedRequest,
  Hooks,
  OnError,
} from './core/contract/hooks.js';
export type {
  DeadJob,
  DeadJobQuery,
  Job,
  JobAttempt,
  JobBackoff,
  JobEngine,
  JobHandler,
  JobNews,
  JobNewsListener,
  JobOptions,
  JobScope,
  JobWorker,
  SqlTransaction,
  WorkOptions,
} from './core/contract/job-engine.js';
export type {
  CompletionOptions,
  JobBeginning,
  JobPage,
  JobQuery,
  JobStatus,
  JobStore,
  StoredJob,
  StoreWithJobs,
  UnsentQuery,
} from './core/contract/job-store.js';
export type {
  JsonObject,
  JsonSchema,
  SchemaSource,
  StandardSchema,
  ValueOf,
} from './core/contract/json-schema.js';
export type {
  AssistantMessage,
  FinishReason,
  LLMProvider,
  LLMRequest,
  LLMResponse,
  LLMStreamPart,
  Message,
  MessageToolCall,
  ProviderItems,
  ReplyAttachment,
  RequestMetadata,
  ResponseForm,
  ResponseFormat,
  SystemMessage,
  ToolCall,
  ToolChoice,
  ToolMessage,
  ToolSchema,
  Usage,
  UserMessage,
} from './core/contract/llm-provider.js';
export type {
  InjectionToken,
  InstanceResolver,
  LogFields,
  Logger,
  LogLevel,
  ScopedResolver,
} from './core/contract/ports.js';
export type {
  KeptResult,
  ResultCache,
  ResultKey,
  ResultStore,
  StoreWithCache,
  StoreWithResults,
} from './core/contract/result-store.js';
export type { RetentionAges, RetentionReport, StoreWithRetention } from './core/contract/retention.js';
export type {
  CheckpointStore,
  KeptRun,
  RunCheckpoint,
  RunEntry,
  RunPage,
  RunQuery,
  RunStatus,
  RunSummary,
  SeizeLease,
  StoredEnd,
  TakenRun,
} from './core/contract/run-checkpoint.js';
export type {
  ClaimOutcome,
  RunClaim,
  RunLease,
  RunState,
  RunStore,
  StoredInnerRun,
  StoredRunResult,
} from './core/contract/run-state.js';
export type {
  DueSchedules,
  Schedule,
  ScheduleMove,
  ScheduleQuery,
  ScheduleStore,
  ScheduleTiming,
  StoreWithSchedules,
} from './core/contract/schedule-store.js';
export type {
  ApprovalStore,
  Remember,
  RememberScope,
  StandingApproval,
  StoreWithApprovals,
} from './core/contract/standing-approvals.js';
export type { Telemetry } from './core/contract/telemetry.js';
export type {
  AgentToolResult,
  AgentToolUpdateCallback,
  ArgumentFault,
  AsyncCallback,
  AsyncTool,
  Compensate,
  ContextualTool,
  Effect,
  Preview,
  Reconcile,
  Reconciliation,
  ToolDefinition,
  ToolExecutionContext,
} from './core/contract/tool.js';
export {
  type BackgroundTask,
  type OncePart,
  type ProgressUpdate,
  type Question,
  type TaskEvent,
  type TaskListener,
  ToolContext,
  type ToolContextData,
} from './core/contract/tool-context.js';
export {
  asyncResult,
  type Content,
  type ContentPart,
  errorResult,
  type FilePart,
  type ImagePart,
  RetryToolCall,
  type SerializedToolResult,
  silentResult,
  type TextPart,
  ToolResult,
  type ToolResultFields,
  toolResult,
  userResult,
} from './core/contract/tool-result.js';
export type { ResourceAccess, Touch, Touches } from './core/contract/touch.js';
export {
  type AuthorFault,
  type InvalidOption,
  InvalidOptionsError,
  ToolDeclarationError,
} from './core/errors/author-fault.js';
export { ProviderError, type ProviderErrorFacts } from './core/errors/provider-error.js';
export {
  ERROR_TABLE,
  type ErrorEntry,
  type ErrorName,
  ToolwrightError,
} from './core/errors/toolwright-error.js';
export type { CheckedArguments } from './run/call/call-pipeline.js';
export type { CallPlace } from './run/call/effect-key.js';
export type {
  AnsweredInvocation,
  CallRequest,
  CallWatcher,
  Invocation,
  KeepOnce,
  OnceValue,
  OnUnknown,
  SuspendedInvocation,
  WatchedCall,
  WatcherAdditions,
} from './run/call/invocation.js';
export {
  type FunctionParameter,
  type FunctionParameterType,
  registerFunction,
} from './run/call/register-function.js';
export type { DescribeError } from './run/call/result-text.js';
export { TaskQueue, type TaskQueueOptions } from './run/call/task-queue.js';
export {
  type NameFilter,
  type RegisteredTool,
  type ToolCallResult,
  ToolRegistry,
  type ToolRegistryOptions,
} from './run/call/tool-registry.js';
export { toolToSchema } from './run/call/tool-to-schema.js';
export { type AnsweredWait, answerWait, type WaitAnswer, type WaitInCall } from './run/call/waits.js';
export { Conversation } from './run/conversation/conversation.js';
export type { ConversationSnapshot } from './run/conversation/conversation-snapshot.js';
export { Conversations } from './run/conversation/conversations.js';
export type {
  AnswersOptions,
  ConversationDeleteOptions,
  ConversationIdleOptions,
  ConversationsCloseOptions,
  ConversationsConfig,
  ConversationsOptions,
  ConversationsStore,
  EventsOptions,
  NextTurn,
  PromptOptions,
  TurnOwner,
} from './run/conversation/conversations-options.js';
export type {
  ConversationEvent,
  ConversationListener,
  KeptEvent,
  NumberedEvent,
  Turn,
  TurnOrigin,
} from './run/conversation/events.js';
export type {
  AnswerOptions,
  ConversationChanges,
  ConversationConfig,
  IdleOptions,
  TurnOptions,
} from './run/conversation/options.js';
export type { ConversationView } from './run/conversation/stored-turns.js';
export { MemoryJobEngine } from './run/jobs/memory-job-engine.js';
export {
  type CancelJobOptions,
  cancelJob,
  type JobCompletion,
  type JobRunner,
  type RunJobsOptions,
  runJobs,
} from './run/jobs/run-jobs.js';
export { type AgentAsToolOptions, type AgentContext, agentAsTool } from './run/loop/agent-as-tool.js';
export type {
  CallDetector,
  DetectedCalls,
  Detector,
} from './run/loop/ask-model.js';
export { type CompensateOptions, type Compensation, compensateRun } from './run/loop/compensate-run.js';
export {
  type BareTool,
  type CompletionBlock,
  type CompletionModel,
  type CompletionRequest,
  complete,
} from './run/loop/complete.js';
export type { LoopEvent, LoopStatus, ToolLoopResult, ToolLoopStream } from './run/loop/events.js';
export { type FoldedRun, foldRun } from './run/loop/fold-run.js';
export type { LoopGuardOptions } from './run/loop/guard.js';
export { type KeepRecentOptions, keepRecent } from './run/loop/keep-recent.js';
export type {
  Checkpoint,
  CompactHistory,
  PrepareStep,
  ProviderTarget,
  ResumeConfig,
  ResumeOptions,
  StepContext,
  StepSettings,
  ToolLoopConfig,
} from './run/loop/options.js';
export { PRICES } from './run/loop/prices.js';
export { resumeToolLoop, runToolLoop, streamResumedToolLoop, streamToolLoop } from './run/loop/run.js';
export {
  type AnsweredRun,
  type AnswerStoredRunOptions,
  answerStoredRun,
  type CancelledRun,
  cancelRun,
  type RecoveredRun,
  type RecoverOptions,
  recoverRuns,
  resumeStoredRun,
  type StoredRun,
} from './run/loop/stored-run.js';
export {
  type ParsedText,
  parseToolRequest,
  type TextToolsOptions,
  ToolCallParser,
  type ToolCallParserOptions,
  type ToolRequest,
  withTextTools,
} from './run/text/text-tool-calls.js';
export {
  type AgentTool,
  type ArgumentsOf,
  agentTool,
  type DefineToolOptions,
  defineTool,
} from './tools/discovery/define-tool.js';
export { type DiscoverOptions, discoverTools } from './tools/discovery/discover-tools.js';
export {
  type NoStrictForm,
  type StrictEdit,
  type StrictForm,
  type StrictNote,
  type StrictReport,
  type StrictSchema,
  strictSchema,
} from './tools/schema/strict/strict-schema.js';
export type { ToolEmbedder } from './tools/search/embedded-tools.js';
export { type SearchedTool, ToolIndex, type ToolQuery } from './tools/search/tool-index.js';

/** The decorator of the completions of MCP; see its own documentation. The type has the same name. */
export const Completion = CompletionDecorator;
/** What `complete` returns; see its own documentation. The decorator has the same name. */
export type Completion = ModelCompletion;
