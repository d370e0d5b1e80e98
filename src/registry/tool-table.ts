import type { Tool } from '../contract/tool.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import { callListener } from '../invocation/call-listener.js';

/** What can be registered: a tool, or a function that makes a new one for each call. */
export type RegisteredTool = Tool | ToolDefinition | (() => Tool | ToolDefinition);

/** One registered tool. */
export interface ToolEntry {
  /** The tool that serves the next call. */
  readonly open: () => ToolDefinition;
  /** The tool as it was when it was registered: what is offered. */
  readonly offered: ToolDefinition;
}

/** Names and the tools behind them, in order of registration. */
export interface ToolTable {
  get(name: string): ToolEntry | undefined;
  entries(): Iterable<readonly [string, ToolEntry]>;
  /** Grows whenever something changes. */
  readonly revision: number;
  /** Tells a listener of every change; what it returns ends that. */
  onChange(listener: () => void): () => void;
}

/** A table that can be written. A `Map`, so that a model's `constructor` is just not found. */
export class WritableToolTable implements ToolTable {
  readonly #entries = new Map<string, ToolEntry>();
  readonly #listeners = new Set<() => void>();
  #revision = 0;

  get revision(): number {
    return this.#revision;
  }

  get(name: string): ToolEntry | undefined {
    return this.#entries.get(name);
  }

  entries(): Iterable<readonly [string, ToolEntry]> {
    return this.#entries;
  }

  set(name: string, entry: ToolEntry): void {
    this.#entries.set(name, entry);
    this.#changed();
  }

  delete(name: string): void {
    if (this.#entries.delete(name)) this.#changed();
  }

  onChange(listener: () => void): () => void {
    // The same function may listen twice.
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  #changed(): void {
    this.#revision += 1;
    // A listener that throws must not keep the rest from being registered.
    for (const listener of this.#listeners) callListener(listener, ignore);
  }
}

/** A part of another table, always as that table is now. What it hides can neither be seen nor called. */
export class ToolTableView implements ToolTable {
  readonly #source: ToolTable;
  readonly #isVisible: (name: string) => boolean;

  constructor(source: ToolTable, isVisible: (name: string) => boolean) {
    this.#source = source;
    this.#isVisible = isVisible;
  }

  get revision(): number {
    return this.#source.revision;
  }

  get(name: string): ToolEntry | undefined {
    return this.#isVisible(name) ? this.#source.get(name) : undefined;
  }

  /** Hears of changes of what it hides, too: what a list has lost is not there to be asked for. */
  onChange(listener: () => void): () => void {
    return this.#source.onChange(listener);
  }

  *entries(): Iterable<readonly [string, ToolEntry]> {
    for (const entry of this.#source.entries()) if (this.#isVisible(entry[0])) yield entry;
  }
}

function ignore(): void {}
