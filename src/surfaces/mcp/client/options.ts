import type { Tool as McpTool } from '@modelcontextprotocol/server';
import type { Logger } from '../../../core/contract/ports.js';
import { type Telemetry } from '../../../core/contract/telemetry.js';
import { type NameFilter } from '../../../run/call/tool-registry.js';
import type { ConnectedMcpClient, McpConnectionStatus } from './connect-options.js';

/**
 * A connected `Client` of `@modelcontextprotocol/client`, or a function that connects one. The function is called again
 * when the connection is lost.
 */
export type McpClientSource = ConnectedMcpClient | (() => ConnectedMcpClient | Promise<ConnectedMcpClient>);

/** A tool as its server currently defines it. */
export interface McpToolCandidate {
  /** Its name in the registry; `definition.name` is the server's. */
  readonly name: string;
  readonly definition: McpTool;
  /** A digest of everything that a model receives about the tool: store it to detect later changes. */
  readonly fingerprint: string;
  /** The approved definition, or the last one if none was approved; absent for a new tool. */
  readonly previous?: { readonly definition: McpTool; readonly fingerprint: string };
}

/** A tool that was added, changed, removed or withheld. */
export interface McpToolChange {
  readonly kind: 'added' | 'changed' | 'removed' | 'withheld';
  readonly name: string;
  /** Why a tool is withheld. */
  readonly reason?: 'not approved' | 'name taken' | 'malformed';
  /** Absent for a removed tool. */
  readonly candidate?: McpToolCandidate;
}

/** Options of `mcpTools` and `followMcpTools`. */
export interface McpToolsOptions extends NameFilter {
  /** Put before each name, with `_`. */
  readonly prefix?: string;
  /**
   * Milliseconds for one call. Default: two minutes. With `Infinity`, only the `toolTimeoutMs` of the run or the
   * registry applies.
   */
  readonly timeoutMs?: number;
  /** The server's names of tools that run in the background, with `*` for any characters. Default: none. */
  readonly background?: readonly string[];
  /**
   * Whether a tool is registered, also when its definition has changed. All approvals are requested at the same time.
   * Default: all tools are registered.
   */
  approve?(candidate: McpToolCandidate): boolean | Promise<boolean>;
  /**
   * `true`: fills in the defaults of the server's schemas. Default `false`, because servers apply their own defaults,
   * and some declare defaults that they do not accept.
   */
  readonly fillDefaults?: boolean;
  /**
   * Receives warnings about malformed tools, and about patterns that only the server checks. Default: process
   * warnings.
   */
  readonly logger?: Logger;
  /**
   * Records reading the server's list, and calls that nothing else records. Default for `followMcpTools`: the
   * registry's.
   */
  readonly telemetry?: Telemetry;
  /** Called for every change, and for every tool that is withheld. */
  onChange?(change: McpToolChange): void;
  /** Receives errors while changes are followed, and errors of `approve`; default: they are logged. */
  onError?(error: unknown): void;
}

/** A registry that follows a server. */
export interface McpFollowing {
  /** For health checks; nothing is sent. */
  readonly status: McpConnectionStatus;
  /** Reads the server's list now; resolves once every tool is decided about. */
  refresh(): Promise<void>;
  /**
   * Stops following; registered tools stay. A client that was passed in stays connected. A connection that a function
   * opened is closed, and calls of the tools then fail.
   */
  close(): Promise<void>;
}
