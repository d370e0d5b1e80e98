export { AgentTools, agentTools } from './agent-tools.js';
export { Agents, type AgentsOptions, type AgentTask, type NamedAgent } from './agents.js';
export { HandOffs, type HandOffsOptions, HandOffTools } from './hand-offs.js';
export type { Forbids, OfferOptions } from './offered-agents.js';
