export {
  Agents,
  type AgentsOptions,
  type AgentTask,
  AgentTools,
  agentTools,
  type Forbids,
  HandOffs,
  type HandOffsOptions,
  HandOffTools,
  type NamedAgent,
  type OfferOptions,
} from './agents.js';
