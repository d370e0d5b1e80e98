import type { JobOptions } from './job-engine.js';
import type { JsonObject, JsonSchema, SchemaSource } from './json-schema.js';
import type { RememberScope } from './standing-approvals.js';
import type { ToolContext } from './tool-context.js';

/** Hints about a tool, with MCP's meanings; there are no defaults. */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnly?: boolean;
  readonly destructive?: boolean;
  readonly idempotent?: boolean;
  readonly openWorld?: boolean;
}

/** An icon of a tool, as in MCP: an `https:` or `data:` URL. */
interface ToolIcon {
  readonly src: string;
  readonly mimeType?: string;
  /** `48x48`, or `any` for scalable images. */
  readonly sizes?: readonly string[];
  readonly theme?: 'light' | 'dark';
}

/** The origins that an MCP App may use, such as `https://api.example.org`; hosts block all others. */
export interface McpAppCsp {
  /** Origins of network requests: `https://…`, `wss://…`. */
  readonly connectDomains?: readonly string[];
  /** Origins of scripts, styles, images, fonts and media; `https://*.example.org` allows all subdomains. */
  readonly resourceDomains?: readonly string[];
  /** Origins of nested frames. */
  readonly frameDomains?: readonly string[];
  /** Origins that the document may use as its base. */
  readonly baseUriDomains?: readonly string[];
}

/** The browser features that an MCP App asks for; a host may deny them. */
export interface McpAppPermissions {
  readonly camera?: object;
  readonly microphone?: object;
  readonly geolocation?: object;
  readonly clipboardWrite?: object;
}

/**
 * An HTML view of a tool's results, which hosts of MCP Apps show in a sandboxed frame. Several tools may share a view.
 * It receives the arguments and the `structuredContent` of each call.
 *
 * @example
 * ```ts
 * const OrderCard: McpApp = {
 *   uri: 'ui://shop/order-card',
 *   html: '<!doctype html><p id="order"></p><script src="https://images.example.org/card.js"></script>',
 *   csp: { resourceDomains: ['https://images.example.org'] },
 *   prefersBorder: true,
 * };
 * ```
 */
export interface McpApp {
  /** Begins with `ui://`. */
  readonly uri: string;
  /** A complete HTML document, or a function that returns it. */
  readonly html: string | (() => string | Promise<string>);
  readonly title?: string;
  readonly description?: string;
  /** Default: the view uses no other origin. */
  readonly csp?: McpAppCsp;
  readonly permissions?: McpAppPermissions;
  /** The origin that the view gets, as the host documents: `abc123.claudemcpcontent.com`. */
  readonly domain?: string;
  /** Whether the host draws a border around the view; default: the host decides. */
  readonly prefersBorder?: boolean;
}

/** Whether a call needs an approval before it runs. */
export type ApprovalNeed = boolean | ((args: JsonObject, context: ToolContext) => boolean | Promise<boolean>);

/** The decisions that an approver may make: approve, approve with other arguments, refuse. */
export type ApprovalDecision = 'approve' | 'edit' | 'refuse';

/** An attempt to approve a call. */
export interface ApproverRequest {
  /** Who answers: the owner of the run, or the value of `answeredBy`. */
  readonly answeredBy: unknown;
  /** The owner of the run. */
  readonly owner: unknown;
  /** The call with the arguments that would run: the edited ones, if the approver edited them. */
  readonly call: { readonly tool: string; readonly arguments: JsonObject };
}

/**
 * Who may approve calls of a tool: every user who may answer for the run (`may-answer`), all of them except its owner
 * (`not-the-owner`), or those for whom a function returns `true`. If the function throws, the approval is refused.
 *
 * @example
 * ```ts
 * const approver: Approver = ({ answeredBy, call }) =>
 *   Number(call.arguments.amount) <= 100 || JSON.stringify(answeredBy) === '{"user":"head-of-sales"}';
 * ```
 */
export type Approver = 'may-answer' | 'not-the-owner' | ((request: ApproverRequest) => boolean);

/**
 * How an approval is requested.
 *
 * @example
 * ```ts
 * const approval: ApprovalOptions = {
 *   when: ({ amount }) => Number(amount) > 100,
 *   decisions: ['approve', 'refuse'],
 *   title: 'Pay an invoice',
 *   description: ({ amount }) => `${amount} EUR leave the account at once.`,
 *   risk: 'high',
 *   expiresInMs: 3_600_000,
 * };
 * ```
 */
export interface ApprovalOptions {
  /** Whether an approval is requested; default: always. */
  readonly when?: ApprovalNeed;
  /**
   * Who may approve; default: `may-answer`. With another value, a run without an owner refuses to start with the
   * tool.
   */
  readonly approver?: Approver;
  /** The possible decisions; default: all three. */
  readonly decisions?: readonly ApprovalDecision[];
  /** The title of the question, for people. */
  readonly title?: string;
  /** The effect of the call, for people. */
  readonly description?: string | ((args: JsonObject) => string);
  /** Shown to the person who decides. */
  readonly risk?: 'low' | 'medium' | 'high';
  /** Milliseconds until the question expires; default: the run's `answerWithinMs`. */
  readonly expiresInMs?: number;
  /** Which later calls an approval may cover; default: none. */
  readonly remember?: RememberOptions;
}

/** Which later calls of a tool an approval may cover. */
export interface RememberOptions {
  /** How far the approval may reach. */
  readonly scopes: readonly RememberScope[];
  /**
   * What later calls must have in common: names of arguments, or a function whose results are compared as JSON.
   * Default: all arguments are equal.
   */
  readonly by?: readonly string[] | ((args: JsonObject) => unknown);
  /** The longest validity in milliseconds; default: no limit. */
  readonly maxMs?: number;
}

/** Whether a call needs an approval before it runs, and how it is requested. */
export type Approval = ApprovalNeed | ApprovalOptions;

/**
 * How an engine treats the background work of a tool. Without an engine, the work starts immediately and is tried
 * once.
 */
export interface BackgroundOptions extends JobOptions {
  /** The most work of this tool at the same time in each process; default: the worker's own limit. */
  readonly concurrency?: number;
}

/** How calls of a tool are executed: the options that are not part of the schema. */
export interface ToolBehaviour {
  /** Milliseconds after which a call ends as timed out (default: the run's `toolTimeoutMs`). */
  readonly timeoutMs?: number;
  /** Calls run alone, in call order. */
  readonly sequential?: boolean;
  /** Whether a person must allow the call. */
  readonly approval?: Approval;
  /** The whole method runs in the background. The options apply if it runs as a job of an engine. */
  readonly background?: boolean | BackgroundOptions;
  /** `client`: the client executes the call; the body never runs here. */
  readonly execution?: 'server' | 'client';
  /** `false`: arguments that need repair are refused; default: `true`, for `destructive` tools `false`. */
  readonly repair?: boolean;
  /** `false`: types are not converted, so that the string `"5"` is not a number; default: `true`. */
  readonly coerce?: boolean;
  /** The most characters of a result that the model receives (default: the registry's). The rest is in `details`. */
  readonly maxResultChars?: number;
  /** How often the model may correct its arguments. Overrides the loop's `maxRetries`. */
  readonly retries?: number;
  /** What the tool does, for policies and clients: `readOnly`, `destructive`, … */
  readonly annotations?: ToolAnnotations;
  /** Offers the tool in its strict form (`strictSchema`), so that servers enforce the schema. `false`: never. */
  readonly strict?: boolean;
  /**
   * `text`: the model writes plain text instead of JSON, for queries, code and patches. The provider must support
   * such tools. The tool has exactly one parameter, a string, which receives the text.
   */
  readonly input?: 'json' | 'text';
  /** The result is the answer of a run without `output`. No further request is sent to the model. */
  readonly returnDirect?: boolean;
  /**
   * Whether `cacheResults` stores results of a `readOnly` tool; default: separately for each owner, for the hook's
   * lifetime.
   */
  readonly cache?: boolean | ResultCaching;
  /** The cost of a call, in the unit of the budgets' prices. It is counted and limited if a run has a `budget`. */
  readonly cost?: number | ((args: JsonObject) => number);
  /**
   * `true`: the model finds the tool by a search. `false`: the tool is part of every request, even if the run defers
   * tools above a limit (`deferAbove`).
   */
  readonly defer?: boolean;
  /**
   * A group of tools, such as `billing`. It is searched in addition to the tool's own text, and shown by providers
   * that support groups.
   */
  readonly namespace?: string;
  /**
   * OAuth scopes that a caller must have, all of them. They are compared with `scope.scopes` of the call, which an
   * MCP server fills from the token. A call without them is refused.
   */
  readonly scopes?: readonly string[];
  /** An MCP server with `oauth` also offers the tool to callers without a token. Cannot be combined with `scopes`. */
  readonly public?: boolean;
  /** Sent as `_meta` of the tool in MCP's `tools/list`. */
  readonly _meta?: Readonly<Record<string, unknown>>;
  /** Shown by MCP clients. */
  readonly icons?: readonly ToolIcon[];
  /** The view that hosts of MCP Apps show for a call. The tool needs an `output` that is an object. */
  readonly ui?: McpApp;
}

/** How results of a tool are cached for later calls. */
export interface ResultCaching {
  /** Milliseconds; default: the hook's. */
  readonly lifetimeMs?: number;
  /** All owners share results, because they depend only on the arguments; default: `false`. */
  readonly shared?: boolean;
}

/** The options that prompts, resources and completions share with tools. */
type ServedBehaviour = Pick<ToolBehaviour, 'scopes' | 'public' | '_meta' | 'icons' | 'timeoutMs'>;

/** Options of `@Prompt`. */
export interface PromptOptions extends ServedBehaviour {
  /** Default: as the name of a tool. */
  readonly name?: string;
  /** Shown to people instead of the name. */
  readonly title?: string;
  readonly description?: string;
}

/** Options of `@Resource`. */
export interface ResourceOptions extends PromptOptions {
  /** Default: `text/plain` for strings, `application/octet-stream` for bytes, `application/json` for other values. */
  readonly mimeType?: string;
  /** The intended readers of the resource. */
  readonly audience?: readonly ('user' | 'assistant')[];
  /** From 0 (least important) to 1 (most important). */
  readonly priority?: number;
  /** Milliseconds for which clients may cache the content; default: 0. */
  readonly ttlMs?: number;
  /** Who may share cached content; default: `private`. */
  readonly cacheScope?: 'public' | 'private';
}

/** The MCP feature that a method provides, if it is not a tool. */
export type ServedAs =
  | { readonly kind: 'prompt' }
  | ({ readonly kind: 'resource'; readonly uri: string } & {
      readonly [Option in 'mimeType' | 'audience' | 'priority' | 'ttlMs' | 'cacheScope']?:
        | ResourceOptions[Option]
        | undefined;
    })
  | { readonly kind: 'completion'; readonly of: string; readonly argument: string };

/** Options of `@Tool`. */
export interface ToolOptions extends ToolBehaviour {
  /** Default: the toolset's prefix, `_`, and the method's name in snake_case. */
  readonly name?: string;
  readonly description?: string;
  /** Explicit schema of the arguments; overrides every derived schema. */
  readonly parameters?: SchemaSource;
  /** Schema of the result; `false`: no schema, even if the generated file has one. */
  readonly output?: SchemaSource | false;
  /**
   * The method of the class that determines the outcome of an interrupted call. Both `recoverRuns` and
   * `compensateRun` use it. It receives the `Effect` and the `ToolContext`, and returns a `Reconciliation`.
   */
  readonly reconcile?: string;
  /**
   * The method of the class that undoes a call (`compensateRun`). It receives the `Effect` with its `result`, and the
   * `ToolContext`.
   */
  readonly compensate?: string;
  /**
   * The method of the class that lists the resources of a call. It receives the arguments and the `ToolContext`, and
   * returns `ResourceAccess` objects. Policies use them (`toolwright/toolbox/permissions`).
   */
  readonly touches?: string;
  /**
   * The method of the class that describes a call for approvers. It receives the arguments and the `ToolContext`, and
   * returns a text, such as the diff of an edit. It must not change anything.
   */
  readonly preview?: string;
}

/** The options that name a method of the class; tools without a class have functions there. */
export const COMPANIONS = ['reconcile', 'compensate', 'touches', 'preview'] as const;

export type Companion = (typeof COMPANIONS)[number];

/**
 * How long an instance of a toolset class lives: one instance for all calls, one per resolution, or one per call in a
 * child container that is disposed when the call is completed.
 */
export type ToolsetScope = 'singleton' | 'transient' | 'scoped';

/** The `name` and `description` in `@Toolset` of the tool's class. */
export interface ToolsetTitle {
  readonly name: string;
  readonly description?: string;
}

/** Options of `@Toolset`. */
export interface ToolsetOptions {
  /** Display name, as in `toolwright list` and for MCP clients; default: the class's name. */
  readonly name?: string;
  /** Prepended with `_` to each tool's derived name. Explicit names do not change. */
  readonly prefix?: string;
  /** The purpose of its tools and how they work together. */
  readonly description?: string;
  /** Default: the container's setting for the class, otherwise `singleton`. */
  readonly scope?: ToolsetScope;
  /** Whether its tools are found by a search. A tool's own `defer` wins. */
  readonly defer?: boolean;
  /** The namespace of its tools that have no own `namespace`. */
  readonly namespace?: string;
}

/** The runtime form of a type: a class, `String`, `Number`, `Boolean`, `Date`, `Object`, {@link Integer}. */
export type TypeToken =
  | ClassType<unknown>
  | StringConstructor
  | NumberConstructor
  | BooleanConstructor
  | DateConstructor
  | ObjectConstructor
  | typeof Integer;

/**
 * A type as an author writes it: usually inside a function, so that it can refer to classes that are declared later.
 * An array of one token means an array of that type.
 */
export type TypeReference = TypeToken | (() => TypeToken | readonly TypeToken[]);

/** The allowed values: a list, or a TypeScript enum object. */
export type EnumSource = readonly unknown[] | Readonly<Record<string, string | number>>;

/** JSON Schema's constraints by their own names, for `@Param`. */
export interface SchemaConstraints {
  readonly title?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly const?: unknown;
  readonly examples?: readonly unknown[];
  readonly deprecated?: boolean;
}

/** Options of `@Param`, on a method's parameter or on a property of a DTO class. */
export interface ParamOptions extends SchemaConstraints {
  /** Name of the property; default: the parameter's own name. */
  readonly name?: string;
  readonly description?: string;
  /** `() => Integer`, `() => ItemDto`, `() => [ItemDto]`, … */
  readonly type?: TypeReference;
  /** Type of an array's items; makes the parameter an array. */
  readonly items?: TypeReference | JsonSchema;
  readonly enum?: EnumSource;
  readonly required?: boolean;
  /** `null` is an allowed value. */
  readonly nullable?: boolean;
  readonly default?: unknown;
  /** Makes the parameter a record whose values have this type. */
  readonly additionalProperties?: boolean | JsonSchema | TypeReference;
  /**
   * Explicit schema; overrides every derived schema. Additional constraints apply too. `type`, `items`, `enum` and
   * `additionalProperties` are refused beside it, because they would repeat the type.
   */
  readonly schema?: SchemaSource;
}

/** Options of `@Args`. */
export interface ArgsOptions {
  /** class-validator groups whose rules apply; default: all rules, as class-validator does. */
  readonly groups?: readonly string[];
}

/** Any class, including abstract classes: decorators and containers use it as a key. */
// biome-ignore lint/suspicious/noExplicitAny: only `any` accepts every constructor signature
export type ClassType<Instance = object> = abstract new (...args: any[]) => Instance;

/**
 * JSON Schema whose nodes may name the class of a value in the tool: `instanceOf: Date`, `URL`, `Uint8Array`,
 * `BigInt`, `Set`, `Map`, or a DTO class, which has its own description.
 */
export type DescribedSchema = JsonSchema & { readonly instanceOf?: unknown };

/** One parameter of a described tool method. */
export interface DescribedParameter {
  /** Absent if the parameter is destructured. */
  readonly name?: string;
  /** The parameter is not part of the schema. */
  readonly inject?: 'context' | 'signal';
  readonly optional?: boolean;
  /** A rest parameter; its schema is that of the array. */
  readonly rest?: boolean;
  /** Absent if decorators define the whole schema. */
  readonly schema?: DescribedSchema;
}

/** A described tool method. */
export interface DescribedTool {
  /** From the TSDoc comment; the description in `@Tool` overrides it. */
  readonly description?: string;
  readonly parameters: readonly DescribedParameter[];
  /** JSON Schema of the result. */
  readonly output?: JsonSchema;
  /** Recursive types. */
  readonly $defs?: Readonly<Record<string, DescribedSchema>>;
}

/** A described property of a DTO class. */
export interface DescribedProperty {
  readonly schema: DescribedSchema;
  readonly optional?: boolean;
}

/** The types of a class, as `toolwright generate` writes them. */
export interface ClassDescription {
  /** Name of a DTO class in `$defs`, because minifiers rename classes. */
  readonly name?: string;
  /** The classes of the constructor's parameters; `undefined` for a parameter without a class. */
  readonly dependencies?: readonly (object | undefined)[];
  readonly tools?: Readonly<Record<string, DescribedTool>>;
  readonly properties?: Readonly<Record<string, DescribedProperty>>;
  readonly $defs?: Readonly<Record<string, DescribedSchema>>;
}

/**
 * Type token for whole numbers, which TypeScript cannot express: `@Param({ type: () => Integer })`,
 * `registerFunction(registry, 'add', 'Add', [['a', Integer], ['b', Integer]], add)`. It becomes
 * `{ "type": "integer" }` and is never instantiated.
 */
export class Integer {
  /** Without its own member, TypeScript would accept any class as this class. */
  declare private readonly wholeNumber: true;

  private constructor() {}
}
