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

/** An image that stands for a tool, as in MCP: `https:` or `data:` addresses. */
interface ToolIcon {
  readonly src: string;
  readonly mimeType?: string;
  /** `48x48`, or `any` for scalable images. */
  readonly sizes?: readonly string[];
  readonly theme?: 'light' | 'dark';
}

/** Whether a call needs an approval first. */
export type ApprovalNeed = boolean | ((args: JsonObject, context: ToolContext) => boolean | Promise<boolean>);

/** The decisions that an approver may make: approve, approve with other arguments, refuse. */
export type ApprovalDecision = 'approve' | 'edit' | 'refuse';

/** Who wants to approve a call, and which one. */
export interface ApproverRequest {
  /** Who answers: the owner of the run, or whoever `answeredBy` names. */
  readonly answeredBy: unknown;
  /** On whose behalf the run takes place. */
  readonly owner: unknown;
  /** The call with the arguments that would run: the edited ones, where they were edited. */
  readonly call: { readonly tool: string; readonly arguments: JsonObject };
}

/**
 * Who may approve calls of a tool: everybody who may answer for the run (`may-answer`), all of them but its owner, or
 * those for whom a function returns `true`. A function that throws refuses.
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
  /** Whether an approval is requested at all; default: always. */
  readonly when?: ApprovalNeed;
  /** Who may approve; default `may-answer`. With another value, runs without an owner refuse the tool at their start. */
  readonly approver?: Approver;
  /** What an answer may be; default: all three. */
  readonly decisions?: readonly ApprovalDecision[];
  /** Of the question, for people. */
  readonly title?: string;
  /** What approving the call would do, for people. */
  readonly description?: string | ((args: JsonObject) => string);
  readonly risk?: 'low' | 'medium' | 'high';
  /** Milliseconds for an answer; default: the run's `answerWithinMs`. */
  readonly expiresInMs?: number;
  /** Which later calls an approval may cover, if the approver asks for that; default: none. */
  readonly remember?: RememberOptions;
}

/** Which later calls of a tool an approval may cover. */
export interface RememberOptions {
  readonly scopes: readonly RememberScope[];
  /**
   * What later calls must have in common with the one that was approved: the names of arguments that are equal, or
   * what a function makes of the arguments, compared as JSON. Default: all arguments are equal.
   */
  readonly by?: readonly string[] | ((args: JsonObject) => unknown);
  /** Milliseconds for which it may stand at most; default: no limit. */
  readonly maxMs?: number;
}

/** Whether a call needs an approval first, and how it is requested. */
export type Approval = ApprovalNeed | ApprovalOptions;

/** How an engine treats the work of a tool. Where there is none, the work begins at once, and once. */
export interface BackgroundOptions extends JobOptions {
  /** How much of it runs at the same time in each process that does jobs; default: as much as that takes on. */
  readonly concurrency?: number;
}

/** How calls of a tool are treated; the part of the options that is not schema. */
export interface ToolBehaviour {
  /** Milliseconds after which a call is answered as timed out (default: the run's `toolTimeoutMs`). */
  readonly timeoutMs?: number;
  /** Calls run alone, in call order. */
  readonly sequential?: boolean;
  readonly approval?: Approval;
  /** The whole method runs in the background; with options, where that is a job of an engine. */
  readonly background?: boolean | BackgroundOptions;
  /** `client`: the body never runs here; the caller's side executes it. */
  readonly execution?: 'server' | 'client';
  /** `false`: arguments that needed repair are refused; default `true`, for `destructive` tools `false`. */
  readonly repair?: boolean;
  /** `false`: types are not repaired, so that the text `"5"` is no number; default `true`. */
  readonly coerce?: boolean;
  /** Characters of a result that the model sees at most; the rest is in `details` (default: the registry's). */
  readonly maxResultChars?: number;
  /** How often the model may correct itself; overrides the loop's `maxRetries`. */
  readonly retries?: number;
  readonly annotations?: ToolAnnotations;
  /** Offer it in its strict form (`strictSchema`), so that servers hold the model to it; false: never. */
  readonly strict?: boolean;
  /**
   * `text`: the model writes plain text where a provider has tools of that kind, and not JSON with a text in it; for
   * queries, code and patches. The tool has exactly one parameter, a string, which that text becomes.
   */
  readonly input?: 'json' | 'text';
  /** The result is the run's answer; the model is not asked again. */
  readonly returnDirect?: boolean;
  /** Whether `cacheResults` keeps results of a `readOnly` tool; default: of each for itself, for the hook's lifetime. */
  readonly cache?: boolean | ResultCaching;
  /** What a call costs, in the unit of the budgets' prices; counted and limited where a run has a `budget`. */
  readonly cost?: number | ((args: JsonObject) => number);
  /**
   * The model is not offered it with every request, but finds it by a search when it needs it; `false`: not even where a
   * run defers what is too much (`deferAbove`).
   */
  readonly defer?: boolean;
  /** What it is found under beside its own words, and shown in where providers group tools: `billing`. */
  readonly namespace?: string;
  /**
   * OAuth scopes that a caller must all have. They are compared with `scope.scopes` of the call, which an MCP server
   * fills from the token; a call without them is refused.
   */
  readonly scopes?: readonly string[];
  /** An MCP server with `oauth` offers it also to callers without a token. Not together with `scopes`. */
  readonly public?: boolean;
  /** Sent as `_meta` of the tool in MCP's `tools/list`. */
  readonly _meta?: Readonly<Record<string, unknown>>;
  /** Shown by MCP clients. */
  readonly icons?: readonly ToolIcon[];
}

/** How results of a tool are cached for later calls. */
export interface ResultCaching {
  /** Milliseconds; default: the hook's. */
  readonly lifetimeMs?: number;
  /** A result of one owner is given to others, too: it depends on the arguments alone. Default: false. */
  readonly shared?: boolean;
}

/** What a prompt, a resource and a completion have in common with a tool. */
type ServedBehaviour = Pick<ToolBehaviour, 'scopes' | 'public' | '_meta' | 'icons' | 'timeoutMs'>;

/** Options of `@Prompt`. */
export interface PromptOptions extends ServedBehaviour {
  /** Default: as that of a tool. */
  readonly name?: string;
  /** Shown to people in place of the name. */
  readonly title?: string;
  readonly description?: string;
}

/** Options of `@Resource`. */
export interface ResourceOptions extends PromptOptions {
  /** Default: `text/plain` of texts, `application/octet-stream` of bytes, `application/json` of other values. */
  readonly mimeType?: string;
  /** Whom the resource is for. */
  readonly audience?: readonly ('user' | 'assistant')[];
  /** From 0 to 1, the most important. */
  readonly priority?: number;
  /** Milliseconds for which clients may use what they have read; default 0. */
  readonly ttlMs?: number;
  /** Who may share what was read; default `private`. */
  readonly cacheScope?: 'public' | 'private';
}

/** What a method is for MCP clients, other than a tool. */
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
  /** Explicit schema of the arguments; wins over everything that was derived. */
  readonly parameters?: SchemaSource;
  /** Schema of the result; `false`: none, also where the generated file has one. */
  readonly output?: SchemaSource | false;
  /**
   * Name of a method of the same class that says what came of a call whose process died (`recoverRuns`), or that was cut
   * off or failed (`compensateRun`): it is given the `Effect` and the `ToolContext`, and gives a `Reconciliation`.
   */
  readonly reconcile?: string;
  /**
   * Name of a method of the same class that undoes a call (`compensateRun`): it is given the `Effect`, with the `result`,
   * and the `ToolContext`.
   */
  readonly compensate?: string;
  /**
   * Name of a method of the same class that says what a call would touch: it is given the arguments and the
   * `ToolContext`, and gives `ResourceAccess`es. Policies decide by them (`toolwright/toolbox/permissions`).
   */
  readonly touches?: string;
  /**
   * Name of a method of the same class that says what a call would come to, for whoever is asked for a yes: it is given
   * the arguments and the `ToolContext`, and gives a text, such as the difference that an edit would make. It changes
   * nothing.
   */
  readonly preview?: string;
}

/**
 * How long an instance of a toolset class lives: one for all calls, one per resolution, or one per call
 * in a child container that is disposed when the call has completed.
 */
export type ToolsetScope = 'singleton' | 'transient' | 'scoped';

/** What `@Toolset({ name, description })` said of the class that a tool belongs to. */
export interface ToolsetTitle {
  readonly name: string;
  readonly description?: string;
}

/** Options of `@Toolset`. */
export interface ToolsetOptions {
  /** Name for people, as in `toolwright list` and for MCP clients; default: the class's name. */
  readonly name?: string;
  /** Put before each tool's derived name, with `_`; explicit names stay as they are. */
  readonly prefix?: string;
  /** What its tools are about and how they belong together, in a sentence or two. */
  readonly description?: string;
  /** Default: what the container already says of the class, otherwise `singleton`. */
  readonly scope?: ToolsetScope;
  /** Those of its tools that say nothing else are found by a search and not offered with every request. */
  readonly defer?: boolean;
  /** The namespace of those of its tools that say no other. */
  readonly namespace?: string;
}

/** What stands for a type at run time: a class, `String`, `Number`, `Boolean`, `Date`, `Object`, {@link Integer}. */
export type TypeToken =
  | ClassType<unknown>
  | StringConstructor
  | NumberConstructor
  | BooleanConstructor
  | DateConstructor
  | ObjectConstructor
  | typeof Integer;

/**
 * A type as an author names it: usually behind a function, so that classes declared later can be named;
 * an array of one token means an array of it.
 */
export type TypeReference = TypeToken | (() => TypeToken | readonly TypeToken[]);

/** The values that are allowed: a list, or a TypeScript enum object. */
export type EnumSource = readonly unknown[] | Readonly<Record<string, string | number>>;

/** JSON Schema's constraints by their own names, as `@Param` takes them. */
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
  /** `null` is a value of its own. */
  readonly nullable?: boolean;
  readonly default?: unknown;
  /** Makes the parameter a record: the type or schema of its values, or `true` for any. */
  readonly additionalProperties?: boolean | JsonSchema | TypeReference;
  /**
   * Explicit schema; wins over everything else that is known of the type. Constraints beside it hold, too; `type`,
   * `items`, `enum` and `additionalProperties` would say the type again, and are refused.
   */
  readonly schema?: SchemaSource;
}

/** Options of `@Args`. */
export interface ArgsOptions {
  /** class-validator groups whose rules apply; default: all rules, as class-validator does. */
  readonly groups?: readonly string[];
}

/** Any class, abstract ones included: what decorators and containers pass around as a key. */
// biome-ignore lint/suspicious/noExplicitAny: only `any` accepts every constructor signature
export type ClassType<Instance = object> = abstract new (...args: any[]) => Instance;

/**
 * JSON Schema whose nodes may say what a value is in the tool: `instanceOf: Date`, `URL`, `Uint8Array`,
 * `BigInt`, `Set`, `Map`, or a DTO class, which is described on its own.
 */
export type DescribedSchema = JsonSchema & { readonly instanceOf?: unknown };

/** One parameter of a described tool method. */
export interface DescribedParameter {
  /** Nothing where the parameter is destructured. */
  readonly name?: string;
  /** The parameter is no part of the schema. */
  readonly inject?: 'context' | 'signal';
  readonly optional?: boolean;
  /** A rest parameter; its schema is that of the array. */
  readonly rest?: boolean;
  /** Nothing where decorators say all. */
  readonly schema?: DescribedSchema;
}

/** A described tool method. */
export interface DescribedTool {
  /** What the TSDoc comment says; `@Tool`'s own description wins. */
  readonly description?: string;
  readonly parameters: readonly DescribedParameter[];
  /** JSON Schema of the result. */
  readonly output?: JsonSchema;
  /** Types that contain themselves. */
  readonly $defs?: Readonly<Record<string, DescribedSchema>>;
}

/** A described property of a DTO class. */
export interface DescribedProperty {
  readonly schema: DescribedSchema;
  readonly optional?: boolean;
}

/** What the types of a class say, as `toolwright generate` writes it. */
export interface ClassDescription {
  /** What a DTO class is called in `$defs`: minifiers rename classes. */
  readonly name?: string;
  /** The classes that the constructor asks for; `undefined` at the place of what is no class. */
  readonly dependencies?: readonly (object | undefined)[];
  readonly tools?: Readonly<Record<string, DescribedTool>>;
  readonly properties?: Readonly<Record<string, DescribedProperty>>;
  readonly $defs?: Readonly<Record<string, DescribedSchema>>;
}

/**
 * Type token for whole numbers, which TypeScript cannot express: `@Param({ type: () => Integer })`,
 * `registerFunction(registry, 'add', 'Add', [['a', Integer], ['b', Integer]], add)`.
 * It becomes `{ "type": "integer" }`. It is never instantiated.
 */
export class Integer {
  /** Without a member of its own, TypeScript would take any class for this one. */
  declare private readonly wholeNumber: true;

  private constructor() {}
}
