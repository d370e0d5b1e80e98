import { callCases } from './call-cases.js';
import type { RecordedCase } from './case.js';
import { conversationCases } from './conversation-cases.js';
import { logCases } from './log-cases.js';
import { loopCases } from './loop-cases.js';
import { mcpCases } from './mcp-cases.js';
import { resultCases } from './result-cases.js';
import { suspensionCases } from './suspension-cases.js';
import { textCases } from './text-cases.js';

/** All recorded cases, always in the same order. */
export function recordedCases(): RecordedCase[] {
  return [
    ...callCases(),
    ...resultCases(),
    ...loopCases(),
    ...suspensionCases(),
    ...conversationCases(),
    ...textCases(),
    ...logCases(),
    ...mcpCases(),
  ];
}
