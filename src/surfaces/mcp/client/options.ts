import type { Tool as McpTool } from '@modelcontextprotocol/server';
import type { Logger } from '../../../core/contract/ports.js';
import { type Telemetry } from '../../../core/contract/telemetry.js';
import { type NameFilter } from '../../../run/call/registration.js';

/**
 * What tells a `Client` of the SDK, version 2. The class is not named, so that who only serves tools compiles
 * without its package, and that of another copy of the SDK fits.
 */
interface SdkClient {
  getProtocolEra(): string | undefined;
  getServerCapabilities(): object | undefined;
  close(): Promise<void>;
}

/**
 * A connected `Client` of `@modelcontextprotocol/client`; or a function that connects one, which is called
 * again when the connection is lost.
 */
export type McpClientSource = SdkClient | (() => SdkClient | Promise<SdkClient>);

/** A tool as its server defines it now. */
export interface McpToolCandidate {
  /** Its name in the registry; `definition.name` is the server's. */
  readonly name: string;
  readonly definition: McpTool;
  /** A digest of everything that a model receives about the tool: store it to notice a change later. */
  readonly fingerprint: string;
  /** What it was before; nothing for a tool that was not there. */
  readonly previous?: { readonly definition: McpTool; readonly fingerprint: string };
}

/** What became of a tool that its server added, changed or took away. */
export interface McpToolChange {
  readonly kind: 'added' | 'changed' | 'removed' | 'withheld';
  readonly name: string;
  /** Why a tool is withheld. */
  readonly reason?: 'not approved' | 'name taken' | 'malformed';
  /** Of all but a removed tool. */
  readonly candidate?: McpToolCandidate;
}

/** Options of `mcpTools` and `followMcpTools`. */
export interface McpToolsOptions extends NameFilter {
  /**
   * Put before each name, with `_`, so that servers do not collide with each other or with tools of your own.
   */
  readonly prefix?: string;
  /**
   * Milliseconds for one call (two minutes; `Infinity`: the run's or the registry's `toolTimeoutMs` counts
   * alone).
   */
  readonly timeoutMs?: number;
  /**
   * Asked before a tool is taken, and again whenever its definition changed; what is not approved is not there.
   * Tools are asked about at once, and none waits for another's answer. Without it, everything is taken.
   */
  approve?(candidate: McpToolCandidate): boolean | Promise<boolean>;
  /**
   * `true`: defaults that the server's schemas name are filled in before its tools are called. By default they
   * are not: the server knows its own, and some name defaults that they do not take.
   */
  readonly fillDefaults?: boolean;
  /**
   * Told of tools that are left out because they are malformed, and of patterns that only the server checks;
   * without it, these are warnings of the process.
   */
  readonly logger?: Logger;
  /**
   * Records the reading of the server's list, and calls of its tools that no registry or run records; default, while
   * changes are followed: the registry's.
   */
  readonly telemetry?: Telemetry;
  /** Hears of every change, and of every tool that is withheld. */
  onChange?(change: McpToolChange): void;
  /** Receives what fails while changes are followed, and what `approve` throws, instead of the log. */
  onError?(error: unknown): void;
}

/** A registry that follows a server. */
export interface McpFollowing {
  /** Reads the server's list again, now; resolves when it is decided about every tool. */
  refresh(): Promise<void>;
  /**
   * Ends the following; the tools stay as they are. A client that was given stays connected. One that a
   * function made is closed, and calls of the tools are errors then.
   */
  close(): Promise<void>;
}
