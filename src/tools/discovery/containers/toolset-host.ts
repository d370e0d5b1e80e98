import type { DependencyContainer, Lifecycle, InjectionToken as TsyringeToken } from 'tsyringe';
import type { ClassType, ToolsetScope } from '../../../core/contract/declaration.js';
import type { InjectionToken, InstanceResolver } from '../../../core/contract/ports.js';
import type { ToolContext } from '../../../core/contract/tool-context.js';
import type { AuthorFault } from '../../../core/errors/author-fault.js';
import { errorMessage } from '../../../core/kernel/error-message.js';
import { loadPackage } from '../../../core/kernel/optional-package.cjs';
import { readDescription } from '../../../core/metadata/class-record.js';

/** A class and how long its instances live. */
interface ProvidedClass {
  readonly class: ClassType;
  readonly lifetime: ProviderLifetime;
}

/** What a walk over the dependencies of a class found. */
interface DependencyReport {
  readonly faults: readonly DependencyFault[];
  /** Tokens with a class behind them, and what it is. */
  readonly providers: ReadonlyMap<TsyringeToken, ProvidedClass>;
}

interface Visit extends ProvidedClass {
  /** From the toolset down to this class. */
  readonly path: readonly string[];
  /** The nearest class on the path, this one included, that lives as long as the container. */
  readonly singleton?: string;
}

/**
 * Walks what a class depends on without creating anything, and finds what would fail or go wrong later:
 * missing providers, and singletons that would keep a scoped dependency for ever.
 */
function inspectDependencies(container: DependencyContainer, root: ProvidedClass): DependencyReport {
  const findings: Findings = { faults: new Map(), providers: new Map(), queue: [] };
  const visited = new Set<ClassType>();
  const visitedBelowSingleton = new Set<ClassType>();
  findings.queue.push(visitOf(root));
  for (let visit = findings.queue.shift(); visit !== undefined; visit = findings.queue.shift()) {
    // A class is looked at again below a singleton: only there can it be captured.
    const done = visit.singleton === undefined ? visited : visitedBelowSingleton;
    if (done.has(visit.class)) continue;
    done.add(visit.class);
    const parameters = constructorParameters(visit.class);
    if (parameters === 'unknown') {
      note(findings, unknownConstructor(visit.class));
      continue;
    }
    for (const [index, parameter] of parameters.entries())
      if (!inspectParameter(container, { visit, parameter, findings }))
        note(findings, missingProvider({ class: visit.class, parameters, index, path: visit.path }));
  }
  return { faults: [...findings.faults.values()], providers: findings.providers };
}

interface Findings {
  /** By problem: two paths to one mistake are one fault. */
  readonly faults: Map<string, DependencyFault>;
  readonly providers: Map<TsyringeToken, ProvidedClass>;
  readonly queue: Visit[];
}

/** Follows one parameter; `false` where nothing provides it. */
function inspectParameter(
  container: DependencyContainer,
  of: { readonly visit: Visit; readonly parameter: ConstructorParameter; readonly findings: Findings },
): boolean {
  const { visit, parameter, findings } = of;
  const token = undelay(parameter.token);
  const providers = providersOf(container, token);
  for (const provider of providers) {
    if (provider.kind === 'opaque') continue;
    findings.providers.set(token as TsyringeToken, provider);
    findings.queue.push(visitOf(provider, visit));
    if (provider.lifetime !== 'scoped' || visit.singleton === undefined) continue;
    note(findings, capturedScope({ singleton: visit.singleton, scoped: nameOf(token), path: visit.path }));
  }
  return providers.length > 0 || parameter.isOptional;
}

function visitOf({ class: target, lifetime }: ProvidedClass, from?: Visit): Visit {
  const singleton = lifetime === 'singleton' ? target.name : from?.singleton;
  return { class: target, lifetime, path: [...(from?.path ?? []), target.name], singleton };
}

function note(findings: Findings, fault: DependencyFault): void {
  findings.faults.set(fault.problem, fault);
}

/** `delay(() => Service)` wraps the class until it is loaded; by discovery it is. */
function undelay(token: unknown): unknown {
  const isDelayed =
    typeof token === 'object' && token !== null && 'wrap' in token && typeof token.wrap === 'function';
  return isDelayed ? (token as { wrap(): unknown }).wrap() : token;
}

/** What one constructor parameter asks the container for. */
interface ConstructorParameter {
  readonly token: TsyringeToken | undefined;
  readonly isOptional: boolean;
  /** `@injectAll`: every provider of the token. */
  readonly isMultiple: boolean;
}

/** The parameters, or `unknown` where the class needs arguments that nothing describes. */
type ConstructorFacts = readonly ConstructorParameter[] | 'unknown';

/** tsyringe's own key for what `@inject` and its siblings said. */
const TOKENS_KEY = 'injectionTokens';

interface TokenDescriptor {
  readonly token: TsyringeToken;
  readonly isOptional?: boolean;
  readonly multiple?: boolean;
}

/**
 * What a class's constructor asks for. Where decorator metadata exists, the class is marked injectable on
 * the way: tsyringe refuses classes that its `injectable()` never saw, and a decorator of ours must not
 * do more than record.
 */
function constructorParameters(target: ClassType): ConstructorFacts {
  const tokens: Readonly<Record<number, TsyringeToken | TokenDescriptor>> =
    Reflect.getOwnMetadata(TOKENS_KEY, target) ?? {};
  const designTypes = describedTypes(target) ?? designTypesFrom(tokens, target.length);
  if (designTypes === undefined) return 'unknown';
  const parameters = designTypes.map((designType, index) => readParameter(tokens[index] ?? designType));
  loadTsyringe().injectable()(target as new () => object);
  return parameters;
}

/**
 * What metadata and the generated file say of a constructor; where both do, the classes of the latter, which
 * `import type` and interfaces cannot hide. It is kept where tsyringe looks for it.
 */
function describedTypes(target: ClassType): readonly unknown[] | undefined {
  const emitted: readonly unknown[] | undefined = Reflect.getMetadata('design:paramtypes', target);
  const described = readDescription(target)?.dependencies;
  if (described === undefined || (emitted !== undefined && emitted.length !== described.length))
    return emitted;
  const types = described.map((one, index) => one ?? emitted?.[index]);
  Reflect.defineMetadata('design:paramtypes', types, target);
  return types;
}

/** Without metadata, as under esbuild, `@inject` on every parameter says as much. */
function designTypesFrom(tokens: object, count: number): readonly unknown[] | undefined {
  const parameters = Array.from({ length: count }, (_, index) => index);
  return parameters.every((index) => Object.hasOwn(tokens, index))
    ? parameters.map(() => undefined)
    : undefined;
}

function readParameter(asked: unknown): ConstructorParameter {
  if (!isDescriptor(asked)) {
    return { token: asked as TsyringeToken | undefined, isOptional: false, isMultiple: false };
  }
  return { token: asked.token, isOptional: asked.isOptional ?? false, isMultiple: asked.multiple ?? false };
}

function isDescriptor(asked: unknown): asked is TokenDescriptor {
  return typeof asked === 'object' && asked !== null && 'token' in asked;
}

/** Something wrong in what a class depends on. */
type DependencyFault = Omit<AuthorFault, 'where' | 'parameter'>;

/** A class needs arguments, and no metadata says which. */
function unknownConstructor(target: ClassType): DependencyFault {
  const unknowns = Array.from({ length: target.length }, () => '?').join(', ');
  return {
    problem: `${target.name}(${unknowns}) needs arguments, but nothing says which`,
    causes: [
      'the class has no decorator',
      'the build tool emits no decorator metadata (esbuild, tsx): run `npx toolwright generate` and import the file that it writes',
    ],
    fix: `@injectable() before class ${target.name}, @inject(…) on every parameter, or a provider for it in the container`,
  };
}

/** Nothing provides a constructor's parameter; the `?` shows which. */
function missingProvider(of: {
  readonly class: ClassType;
  readonly parameters: readonly ConstructorParameter[];
  readonly index: number;
  readonly path: readonly string[];
}): DependencyFault {
  const token = of.parameters[of.index]?.token;
  const signature = of.parameters.map((parameter, index) =>
    index === of.index ? '?' : nameOf(parameter.token),
  );
  const via = of.path.length > 1 ? ` (${of.path.join(' → ')})` : '';
  const problem = `nothing provides parameter #${of.index} (${nameOf(token)}) of ${of.class.name}(${signature.join(', ')})${via}`;
  if (!isLostType(token)) {
    return {
      problem,
      causes: ['the token was never registered in this container'],
      fix: `container.register(${nameOf(token)}, …) before discoverTools`,
    };
  }
  return {
    problem,
    causes: [
      'the type is an interface, a union or a primitive',
      'it is imported with `import type`',
      'two files import each other',
    ],
    fix: '@inject(TOKEN) at the parameter and container.register(TOKEN, …), or @inject(delay(() => Class)) for a cycle',
  };
}

/** A singleton would keep the scoped instance of the first call for ever. */
function capturedScope(of: {
  readonly singleton: string;
  readonly scoped: string;
  readonly path: readonly string[];
}): DependencyFault {
  const path = [...of.path, of.scoped].join(' → ');
  return {
    problem: `the singleton ${of.singleton} would keep the scoped ${of.scoped} of its first call for ever (${path})`,
    fix: `@Toolset({ scope: 'scoped' }) or a shorter lifetime for ${of.singleton}, or resolve it in the call: context.resolve(${of.scoped})`,
  };
}

/** A token as an author would write it. */
function nameOf(token: unknown): string {
  if (typeof token === 'function') return token.name;
  return typeof token === 'string' ? `'${token}'` : String(token);
}

/** What a container does for a token, as far as it concerns injection; aliases are followed. */
type ProviderFacts =
  | { readonly kind: 'class'; readonly class: ClassType; readonly lifetime: ProviderLifetime }
  /** A value or a factory: nothing to look into. */
  | { readonly kind: 'opaque' };

/** The part of tsyringe's container that its types keep private: it has no public way to read a provider. */
interface Registration {
  readonly provider: { readonly useClass?: ClassType; readonly useToken?: TsyringeToken };
  readonly options: { readonly lifecycle: Lifecycle };
}
interface Internals {
  readonly parent?: Internals;
  readonly _registry?: { has(token: unknown): boolean; getAll(token: unknown): readonly Registration[] };
}

/** Built-in types that appear in metadata where the real type is lost or cannot be injected by type. */
const LOST_TYPES: readonly unknown[] = [Object, Array, Function, Promise, String, Number, Boolean];

/** Whether metadata lost the type of a parameter, so that no container can know what is meant. */
function isLostType(token: unknown): boolean {
  return token === undefined || LOST_TYPES.includes(token);
}

/** The providers a container has for a token, a class that was never registered included; none: it is missing. */
function providersOf(container: DependencyContainer, token: unknown): readonly ProviderFacts[] {
  const registrations = registrationsOf(container as unknown as Internals, token);
  if (registrations.length > 0)
    return registrations.flatMap((registration) => follow(container, registration));
  if (typeof token !== 'function' || isLostType(token)) return [];
  return [{ kind: 'class', class: token as ClassType, lifetime: 'transient' }];
}

/** Whether somebody registered a token, here or in a parent. */
function isRegistered(container: DependencyContainer, token: unknown): boolean {
  return registrationsOf(container as unknown as Internals, token).length > 0;
}

/** tsyringe looks in the nearest container that has any registration of the token. */
function registrationsOf(container: Internals | undefined, token: unknown): readonly Registration[] {
  if (container === undefined) return [];
  return container._registry?.has(token)
    ? container._registry.getAll(token)
    : registrationsOf(container.parent, token);
}

/** tsyringe refuses cycles of aliases when they are registered, so following them ends. */
function follow(
  container: DependencyContainer,
  { provider, options }: Registration,
): readonly ProviderFacts[] {
  const lifetime = providerLifetime(options.lifecycle);
  if (provider.useClass !== undefined) return [{ kind: 'class', class: provider.useClass, lifetime }];
  if (provider.useToken === undefined) return [{ kind: 'opaque' }];
  const targets = providersOf(container, provider.useToken);
  // An alias registered as a singleton keeps what it resolved to, however short-lived that is.
  if (lifetime !== 'singleton') return targets;
  return targets.map((target) => (target.kind === 'class' ? { ...target, lifetime } : target));
}

/** How long what a token resolves to lives. */
type ProviderLifetime = 'singleton' | 'scoped' | 'transient';

/** tsyringe's name for a lifetime. */
function lifecycleOf(lifetime: ProviderLifetime): Lifecycle {
  const { Lifecycle } = loadTsyringe();
  if (lifetime === 'singleton') return Lifecycle.Singleton;
  return lifetime === 'scoped' ? Lifecycle.ContainerScoped : Lifecycle.Transient;
}

/** The lifetime behind tsyringe's name; an instance per resolution is gone with the call. */
function providerLifetime(lifecycle: Lifecycle): ProviderLifetime {
  const { Lifecycle } = loadTsyringe();
  if (lifecycle === Lifecycle.Singleton) return 'singleton';
  return lifecycle === Lifecycle.ContainerScoped ? 'scoped' : 'transient';
}

/** Where the instance that serves a call comes from. */
export type InstanceSource =
  | { readonly kind: 'always'; readonly instance: object }
  | { readonly kind: 'per-call'; readonly open: (context: ToolContext) => object };

/** A toolset class and what `@Toolset` says of its lifetime. */
interface HostedToolset {
  readonly class: ClassType;
  readonly scope?: ToolsetScope;
}

/** What discovery needs of a container, whichever it is. */
export interface ToolsetHost {
  readonly resolver: InstanceResolver;
  /** Whether somebody registered the class, or marked it for injection. */
  knows(target: ClassType): boolean;
  /** What would fail or go wrong when a toolset is injected; nothing is created yet. */
  inspect(toolset: HostedToolset): readonly AuthorFault[];
  /** Registers and creates what lives as long as the container. Throws what a constructor throws. */
  open(toolset: HostedToolset): InstanceSource;
}

/** tsyringe, loaded with the first discovery. */
function loadTsyringe(): typeof import('tsyringe') {
  try {
    return loadPackage('tsyringe') as typeof import('tsyringe');
  } catch (cause) {
    throw new Error(
      'tsyringe, which injects the arguments of constructors, cannot be loaded: npm install tsyringe',
      { cause },
    );
  }
}

/** The host for a container; default: tsyringe's global one, or plain constructors where tsyringe is not installed. */
export function toolsetHost(container?: InstanceResolver): ToolsetHost {
  if (container === undefined) {
    try {
      return tsyringeHost(loadTsyringe().container);
    } catch (error) {
      return plainHost(error);
    }
  }
  const isTsyringe =
    'createChildContainer' in container && typeof container.createChildContainer === 'function';
  return isTsyringe ? tsyringeHost(container as DependencyContainer) : portHost(container);
}

function portHost(resolver: InstanceResolver): ToolsetHost {
  return {
    resolver,
    knows: () => false,
    inspect: () => [],
    open: ({ class: toolset, scope = 'singleton' }) =>
      scope === 'singleton' ? always(resolver.resolve(toolset as Token)) : perCall(toolset),
  };
}

/** Creates toolsets whose constructors take nothing. */
function plainHost(reason: unknown): ToolsetHost {
  const resolve = <Instance>(token: InjectionToken<Instance>) => new (token as new () => Instance)();
  return {
    ...portHost({ resolve }),
    inspect: ({ class: { name, length } }) =>
      length === 0
        ? []
        : [
            {
              where: name,
              problem: `its constructor takes ${length === 1 ? 'an argument' : `${length} arguments`}: ${errorMessage(reason)}`,
              fix: "npm install tsyringe; in a bundle, import 'toolwright/tsyringe'; or discoverTools({ container: … })",
            },
          ],
  };
}

function tsyringeHost(container: DependencyContainer): ToolsetHost {
  return {
    resolver: tsyringeResolver(container),
    knows: (target) => isRegistered(container, target),
    inspect(toolset) {
      const lifetime = lifetimeOf(container, toolset);
      if (lifetime === 'opaque') return [];
      const { faults } = inspectDependencies(container, { class: toolset.class, lifetime });
      return faults.map((fault) => ({ where: toolset.class.name, ...fault }));
    },
    open(toolset) {
      const lifetime = lifetimeOf(container, toolset);
      const token = toolset.class as Token;
      if (lifetime === 'opaque') return always(container.resolve(token));
      if (!isRegistered(container, token)) {
        container.register(token, { useClass: token }, { lifecycle: lifecycleOf(lifetime) });
      }
      if (lifetime !== 'singleton') return perCall(toolset.class);
      settleSingletons(container, { class: toolset.class, lifetime });
      return always(container.resolve(token));
    },
  };
}

/** `@Toolset`'s word, otherwise the container's, otherwise one instance for all calls. */
function lifetimeOf(
  container: DependencyContainer,
  { class: toolset, scope }: HostedToolset,
): ToolsetScope | 'opaque' {
  if (!isRegistered(container, toolset)) return scope ?? 'singleton';
  const [provider] = providersOf(container, toolset);
  return provider?.kind === 'class' ? (scope ?? provider.lifetime) : 'opaque';
}

function perCall(toolset: ClassType): InstanceSource {
  const token = toolset as Token;
  return { kind: 'per-call', open: (context) => context.resolve(token) };
}

function always(instance: object): InstanceSource {
  return { kind: 'always', instance };
}

/** Containers' types want a constructor that can be called; a toolset is one. */
type Token = new () => object;

/** A tsyringe container behind the port. */
function tsyringeResolver(container: DependencyContainer): InstanceResolver {
  const settled = new Set<unknown>();
  const settle = (token: TsyringeToken): void => {
    if (settled.has(token)) return;
    settled.add(token);
    for (const provider of providersOf(container, token)) {
      if (provider.kind === 'opaque') continue;
      if (provider.lifetime === 'singleton') container.resolve(token);
      else settleSingletons(container, provider);
    }
  };
  return {
    resolve: <Instance>(token: InjectionToken<Instance>) =>
      container.resolve<Instance>(token as TsyringeToken<Instance>),
    createScope() {
      const child = container.createChildContainer();
      return {
        resolve<Instance>(token: InjectionToken<Instance>) {
          settle(token as TsyringeToken);
          return child.resolve<Instance>(token as TsyringeToken<Instance>);
        },
        dispose: async () => {
          await child.dispose();
        },
      };
    },
  };
}

/**
 * Creates the singletons that a class depends on in the container that owns them. tsyringe would create
 * them in the child container that asks first: they would keep that call's scoped instances, and be
 * disposed with it.
 */
function settleSingletons(container: DependencyContainer, root: ProvidedClass): void {
  const { providers } = inspectDependencies(container, root);
  for (const [token, { lifetime }] of providers) if (lifetime === 'singleton') container.resolve(token);
}

/** A token and what stands in for it. */
export type Override = readonly [token: unknown, value: unknown];

/**
 * A child of the global container in which a class gets stand-ins for some of its dependencies. Every
 * class on the way is registered anew: an instance that exists elsewhere would bring the real
 * dependencies along, and a new one would leak the stand-ins.
 */
export function isolatedContainer(toolset: ClassType, overrides: Iterable<Override>): InstanceResolver {
  const child = loadTsyringe().container.createChildContainer();
  for (const [token, value] of overrides) child.registerInstance(token as TsyringeToken, value);
  const { providers } = inspectDependencies(child, { class: toolset, lifetime: 'transient' });
  for (const [token, provider] of providers) register(child, token, provider);
  // Discovered before, the class has an instance of its own elsewhere.
  const [known] = isRegistered(child, toolset) ? providersOf(child, toolset) : [];
  const lifetime = known?.kind === 'class' ? known.lifetime : 'singleton';
  if (known !== undefined) register(child, toolset as new () => object, { class: toolset, lifetime });
  return child;
}

function register(
  child: DependencyContainer,
  token: TsyringeToken,
  { class: target, lifetime }: ProvidedClass,
): void {
  const useClass = target as new () => object;
  child.register(token as TsyringeToken<object>, { useClass }, { lifecycle: lifecycleOf(lifetime) });
}
