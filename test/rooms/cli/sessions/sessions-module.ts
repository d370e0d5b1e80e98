export { AgentSessions } from '../../../../src/cli/agent-sessions.js';
