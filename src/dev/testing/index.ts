import '../../core/metadata/extensible-reflect.js';
import 'reflect-metadata/lite';

export type { ProviderCapability } from './conformance/bench.js';
export type {
  ModelCall,
  ModelFailure,
  ModelPrompt,
  ModelReasoning,
  ModelReply,
  ModelTurn,
  ProviderBackend,
  Sliceable,
} from './conformance/provider-backend.js';
export {
  type HttpBackendBody,
  type HttpBackendOptions,
  type HttpBackendRequest,
  httpBackend,
} from './conformance/provider-backend.js';
export {
  type ConformanceCase,
  type OmittedCase,
  type ProviderConformance,
  type ProviderConformanceOptions,
  providerConformance,
} from './conformance/provider-conformance.js';
export type { JobEngineBackend, WorkerProcess } from './engines/engine-conformance.js';
export { holdJobs, type JobEngineCase, jobEngineConformance } from './engines/engine-conformance.js';
export {
  type FaultPlan,
  type FaultyFetch,
  type FetchFault,
  faultyFetch,
  type RandomFaults,
} from './faulty-fetch.js';
export { type RecordedFetch, type RecordedFetchOptions, recordedFetch } from './recorded-fetch.js';
export {
  type ScriptedCall,
  ScriptedProvider,
  type ScriptedReply,
  type ScriptedStep,
} from './scripted-provider.js';
export {
  type BudgetLedgerConformanceOptions,
  budgetLedgerConformance,
  type OpenedLedger,
} from './stores/budget-cases.js';
export {
  type ConversationLogConformanceOptions,
  conversationLogConformance,
  type OpenedConversationLog,
} from './stores/conversation-log-cases.js';
export {
  type ConversationStoreConformanceOptions,
  conversationStoreConformance,
  type OpenedConversationStore,
} from './stores/conversation-store-cases.js';
export {
  type JobStoreConformanceOptions,
  jobStoreConformance,
  type OpenedJobStore,
} from './stores/job-store-cases.js';
export { type RunStoreConformanceOptions, runStoreConformance } from './stores/run-store-conformance.js';
export type { OpenedStore } from './stores/store-bench.js';
export {
  type HarnessOverride,
  type ToolHarness,
  type ToolHarnessOptions,
  toolHarness,
} from './tool-harness.js';
export type { ChangeKind, SchemaChange } from './tool-surface.js';
export {
  expectToolSurface,
  type SurfaceChange,
  type SurfaceTool,
  surfaceChanges,
  type ToolSurface,
  type ToolSurfaceOptions,
  toolSurface,
} from './tool-surface.js';
