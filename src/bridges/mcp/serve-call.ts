import {
  type CallToolRequest,
  type CallToolResult,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { canonicalJson } from '../../checking/canonical-json.js';
import type { CallScope } from '../../contract/call-scope.js';
import type { Suspension } from '../../contract/suspension.js';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import { ToolwrightError } from '../../errors/toolwright-error.js';
import type { Invocation } from '../../invocation/invocation.js';
import type { ToolRegistry } from '../../registry/tool-registry.js';
import { type Asked, askClient, readAnswers } from './ask-client.js';
import { promisedOutput } from './describe-tool.js';
import type { McpCaller } from './mcp-caller.js';
import type { McpServerOptions } from './mcp-server-options.js';
import { openScope } from './open-scope.js';
import { reportProgress } from './report-progress.js';
import type { SealedState } from './sealed-state.js';
import { writeCallResult } from './write-call-result.js';

/** One `tools/call`, and who makes it. */
export interface ServedCall {
  readonly server: Server;
  readonly request: CallToolRequest;
  readonly context: ServerContext;
  readonly caller: McpCaller;
  /** The tools that this caller may call. */
  readonly tools: ToolRegistry;
  readonly scope: CallScope;
  readonly options: McpServerOptions;
  readonly state: SealedState;
  /** Whose suspended calls this caller may go on with. */
  readonly principal: string;
  /** Aborted when nobody wants the call any more, or the server is closed. */
  readonly signal: AbortSignal;
}

/** Takes a call up the staircase and says how it ended. What is wrong with the call itself is its result. */
export async function serveCall(served: ServedCall): Promise<CallToolResult | InputRequiredResult> {
  const { tools, server } = served;
  const { name } = served.request.params;
  const resumed = resume(served);
  if (resumed?.ok === false) return ask(served, tools.offered(name), resumed.asked) ?? invalidState();
  const invocation = await invoke(served, resumed?.journal);
  const { result, record } = invocation;
  const tool = tools.offered(name);
  if (isUnknown(invocation)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, result.forLLM);
  const asked = invocation.status === 'suspended' ? ask(served, tool, invocation.suspension) : undefined;
  const output = tool && promisedOutput(tool);
  return asked ?? server.projectCallToolResult(writeCallResult(record, output), output);
}

async function invoke(served: ServedCall, journal: Suspension['journal'] | undefined): Promise<Invocation> {
  const { tools, request, context, caller, options, signal } = served;
  const { name, arguments: args = {} } = request.params;
  const { policy, toolTimeoutMs, onAsyncResult } = options;
  const progress = reportProgress(context);
  // Who declared an `output` promised data with the answer, and an acknowledgement has none.
  const offered = tools.offered(name);
  const isHeard = onAsyncResult !== undefined && (offered && promisedOutput(offered)) === undefined;
  try {
    return await tools.invoke(
      {
        id: String(context.mcpReq.id),
        name,
        // As text: a method may change its arguments, and is run again with what was sent once it has its answer.
        arguments: JSON.stringify(args),
        ...(journal ? { journal } : {}),
      },
      openScope(served.scope, { caller, context, progress, signal }),
      {
        ...(policy ? { policy } : {}),
        ...(toolTimeoutMs === undefined ? {} : { toolTimeoutMs }),
        ...(isHeard ? { onAsyncResult } : {}),
      },
    );
  } finally {
    progress.stop();
  }
}

/** What a client brings along when it comes back with its user's answers. */
function resume(served: ServedCall): ReturnType<typeof readAnswers> | undefined {
  const { mcpReq } = served.context;
  const sealed: unknown = mcpReq.requestState();
  if (sealed === undefined) return undefined;
  const opened = typeof sealed === 'string' ? served.state.open(sealed, ownerOf(served)) : undefined;
  return opened === undefined ? invalidState() : readAnswers(opened as Suspension, mcpReq.inputResponses);
}

function ask(
  served: ServedCall,
  tool: ToolDefinition | undefined,
  asked: Asked,
): InputRequiredResult | CallToolResult | undefined {
  if (tool === undefined) return undefined;
  const { waits, journal } = asked;
  const requestState = () => served.state.seal({ waits, journal }, ownerOf(served));
  return askClient(asked, { tool, caller: served.caller, requestState });
}

/** Whoever comes back must be who was asked: for the transport, and for the application's scope. */
function ownerOf({ request, principal, caller, scope }: ServedCall): string {
  const owner = scope.owner === undefined ? [] : [canonicalJson(scope.owner)];
  return JSON.stringify([request.params.name, principal, caller.sessionId ?? null, ...owner]);
}

function invalidState(): never {
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Invalid or expired requestState');
}

/** In MCP an unknown tool is no result. */
function isUnknown({ record, result }: Invocation): boolean {
  return (
    record.status === 'rejected' && ToolwrightError.is(result.error) && result.error.name === 'ToolNotFound'
  );
}
