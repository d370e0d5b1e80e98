import './metadata/extensible-reflect.js';
import 'reflect-metadata';

export { Args } from '../decorators/args.js';
export { Context } from '../decorators/context.js';
export { describeClass } from '../decorators/describe-class.js';
export { Param } from '../decorators/param.js';
export { Tool } from '../decorators/tool.js';
export { Toolset } from '../decorators/toolset.js';
export type { CheckedArguments } from './call/check-call.js';
export type { CallPlace } from './call/effect-key.js';
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
} from './call/invocation.js';
export {
  type FunctionParameter,
  type FunctionParameterType,
  registerFunction,
} from './call/register-function.js';
export type { NameFilter, RegisteredTool } from './call/registration.js';
export type { DescribeError } from './call/result-text.js';
export { TaskQueue, type TaskQueueOptions } from './call/task-queue.js';
export type { ToolRegistryOptions } from './call/tool-registry.js';
export { type ToolCallResult, ToolRegistry } from './call/tool-registry.js';
export { toolToSchema } from './call/tool-to-schema.js';
export { type AnsweredWait, answerWait, type WaitAnswer, type WaitInCall } from './call/waits.js';
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
} from './contract/budget.js';
export type {
  BudgetAccount,
  BudgetAmounts,
  BudgetBalance,
  BudgetLedger,
  BudgetPart,
  BudgetReservation,
  ReservationOutcome,
  StoreWithBudgets,
} from './contract/budget-ledger.js';
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
} from './contract/call.js';
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
} from './contract/conversation-log.js';
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
} from './contract/declaration.js';
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
} from './contract/hooks.js';
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
} from './contract/job-engine.js';
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
} from './contract/job-store.js';
export type {
  JsonObject,
  JsonSchema,
  SchemaSource,
  StandardSchema,
  ValueOf,
} from './contract/json-schema.js';
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
  ResponseFormat,
  SystemMessage,
  ToolCall,
  ToolChoice,
  ToolMessage,
  ToolSchema,
  Usage,
  UserMessage,
} from './contract/llm-provider.js';
export type {
  InjectionToken,
  InstanceResolver,
  LogFields,
  Logger,
  LogLevel,
  ScopedResolver,
} from './contract/ports.js';
export type {
  KeptResult,
  ResultCache,
  ResultKey,
  ResultStore,
  StoreWithCache,
  StoreWithResults,
} from './contract/result-store.js';
export type { RetentionAges, RetentionReport, StoreWithRetention } from './contract/retention.js';
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
} from './contract/run-checkpoint.js';
export type {
  ClaimOutcome,
  RunClaim,
  RunLease,
  RunState,
  RunStore,
  StoredInnerRun,
  StoredRunResult,
} from './contract/run-state.js';
export type {
  DueSchedules,
  Schedule,
  ScheduleMove,
  ScheduleQuery,
  ScheduleStore,
  ScheduleTiming,
  StoreWithSchedules,
} from './contract/schedule-store.js';
export type {
  ApprovalStore,
  Remember,
  RememberScope,
  StandingApproval,
  StoreWithApprovals,
} from './contract/standing-approvals.js';
export type { Telemetry } from './contract/telemetry.js';
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
} from './contract/tool.js';
export {
  type BackgroundTask,
  type OncePart,
  type ProgressUpdate,
  type Question,
  type TaskEvent,
  type TaskListener,
  ToolContext,
  type ToolContextData,
} from './contract/tool-context.js';
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
} from './contract/tool-result.js';
export type { ResourceAccess, Touch, Touches } from './contract/touch.js';
export { Conversation } from './conversation/conversation.js';
export { Conversations } from './conversation/conversations.js';
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
} from './conversation/conversations-options.js';
export type {
  ConversationEvent,
  ConversationListener,
  KeptEvent,
  NumberedEvent,
  Turn,
  TurnOrigin,
} from './conversation/events.js';
export type {
  AnswerOptions,
  ConversationChanges,
  ConversationConfig,
  IdleOptions,
  TurnOptions,
} from './conversation/options.js';
export type { ConversationSnapshot } from './conversation/snapshot.js';
export type { ConversationView } from './conversation/stored-turns.js';
export {
  type AgentTool,
  type ArgumentsOf,
  agentTool,
  type DefineToolOptions,
  defineTool,
} from './discovery/define-tool.js';
export { type DiscoverOptions, discoverTools } from './discovery/discover-tools.js';
export {
  type AuthorFault,
  type InvalidOption,
  InvalidOptionsError,
  ToolDeclarationError,
} from './errors/author-fault.js';
export { ProviderError, type ProviderErrorFacts } from './errors/provider-error.js';
export { ERROR_TABLE, type ErrorEntry, type ErrorName, ToolwrightError } from './errors/toolwright-error.js';
export type { JobCompletion } from './jobs/job-doer.js';
export { MemoryJobEngine } from './jobs/memory-job-engine.js';
export {
  type CancelJobOptions,
  cancelJob,
  type JobRunner,
  type RunJobsOptions,
  runJobs,
} from './jobs/run-jobs.js';
export { type AgentAsToolOptions, type AgentContext, agentAsTool } from './loop/agent-as-tool.js';
export type {
  CallDetector,
  DetectedCalls,
  Detector,
} from './loop/ask-model.js';
export { type CompensateOptions, type Compensation, compensateRun } from './loop/compensate-run.js';
export {
  type BareTool,
  type Completion,
  type CompletionBlock,
  type CompletionModel,
  type CompletionRequest,
  complete,
} from './loop/complete.js';
export type { LoopEvent, LoopStatus, ToolLoopResult, ToolLoopStream } from './loop/events.js';
export { type FoldedRun, foldRun } from './loop/fold-run.js';
export type { LoopGuardOptions } from './loop/guard.js';
export { type KeepRecentOptions, keepRecent } from './loop/keep-recent.js';
export type {
  Checkpoint,
  ProviderTarget,
  ResumeConfig,
  ResumeOptions,
  ToolLoopConfig,
} from './loop/options.js';
export { PRICES } from './loop/prices.js';
export { type RecoveredRun, type RecoverOptions, recoverRuns } from './loop/recover-runs.js';
export { resumeToolLoop, runToolLoop, streamResumedToolLoop, streamToolLoop } from './loop/run.js';
export type { CompactHistory, PrepareStep, StepContext, StepSettings } from './loop/step-settings.js';
export {
  type AnsweredRun,
  type AnswerStoredRunOptions,
  answerStoredRun,
  type CancelledRun,
  cancelRun,
  resumeStoredRun,
  type StoredRun,
} from './loop/stored-run.js';
export type { StrictEdit, StrictNote, StrictReport } from './schema/strict/strict-schema.js';
export {
  type NoStrictForm,
  type StrictForm,
  type StrictSchema,
  strictSchema,
} from './schema/strict/strict-schema.js';
export type { ToolEmbedder } from './search/embedded-tools.js';
export { type SearchedTool, ToolIndex, type ToolQuery } from './search/tool-index.js';
export {
  type ParsedText,
  parseToolRequest,
  ToolCallParser,
  type ToolCallParserOptions,
  type ToolRequest,
} from './text/tool-call-parser.js';
export { type TextToolsOptions, withTextTools } from './text/with-text-tools.js';
